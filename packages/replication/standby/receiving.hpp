// A standby: takes what the engine has, and can be promoted.
#pragma once

#include "fencing.hpp"

#include <taiyen/replica.h>
#include <taiyen/ship.h>

namespace taiyen::standby {

// The state of a standby beside its heap: a position in the engine, and the change feed's position that goes with it.
struct standby_state {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;
    ty_feed_position position; // ST7: at or before what is durable in the heap
    tail last;                 // the last message that counts
    uint8_t owner[16];
    uint64_t replication;
    uint64_t begun_term; // as in messages
    uint64_t begun_lsn;
    uint64_t checksum; // of all bytes before it
};
inline constexpr uint64_t state_magic = 0x73796264'6e617473; // "standbys"
inline constexpr uint32_t state_version = 1;
static_assert(sizeof(standby_state) == 128 + sizeof(ty_feed_position));

// The state, in a folder of its own, which one process at a time holds.
class state_folder {
public:
    state_folder() = default;
    state_folder(const state_folder &) = delete;
    state_folder &operator=(const state_folder &) = delete;
    ~state_folder() { ty_folder_close(folder_); }
    ty_status open(const std::string &path);
    ty_status read(standby_state *state) const;
    ty_status write(standby_state state) const; // durable
    ty_status remove() const;

private:
    std::string path_;
    ty_destination *folder_ = nullptr;
};

std::string state_path_of(const char *heap_path, const ty_standby_options &options);
ty_status refuse_new_primary(const std::string &path, uint64_t term);
ty_status make_standby(const char *heap_path, const ty_engine &engine, const ty_open_options *open,
                       const ty_standby_options &options, ty_standby_report *report);

} // namespace taiyen::standby

struct ty_standby {
    ty_standby(ty_heap *heap, const char *heap_path, const ty_engine &engine, const ty_standby_options &options);
    ~ty_standby();
    ty_status open();
    ty_status step(uint32_t timeout_ms);
    ty_status promote();
    ty_status take_over();
    void fill_report(ty_standby_report *report) const { *report = report_; }

private:
    static bool take(const void *bytes, size_t size, uint64_t at, void *context);
    ty_status take(const taiyen::standby::message &one);
    ty_status take_timeline(const taiyen::standby::message &one);
    ty_status take_records(const taiyen::standby::message &one);
    ty_status take_part(const taiyen::standby::message &one);
    ty_status receive(const ty_feed_record *records, size_t count);
    ty_status save();
    taiyen::standby::fencing_record fencing_record_now() const;
    ty_status look(taiyen::standby::records_end *at, taiyen::standby::log_comparison *is) const;
    ty_status explain(ty_status why) const;
    ty_status take_all(uint32_t timeout_ms);
    ty_status check_last();
    ty_status read_last();
    ty_status read_on(uint32_t timeout_ms);
    void go_back();
    void taken(const taiyen::standby::tail &last);
    ty_status listen(uint64_t waited_ms);
    ty_status catch_up(uint64_t to);
    ty_status prepare_promotion();
    ty_status refuse_primary(ty_status why);
    bool may_begin_term() const;
    ty_status prepare_term();
    ty_status prepare_term(uint64_t begun_term, uint64_t begun_lsn);
    ty_status promote_before_timeline(ty_status why);
    ty_status find_base_named(uint64_t until, bool *named) const;
    ty_status put_term_after(const taiyen::standby::records_end &at);
    ty_status begin_term(taiyen::standby::message_kind kind, uint64_t after, uint64_t *at);
    ty_status end_promotion();
    ty_status finish();

    ty_heap *heap_;
    std::string path_;
    const ty_engine &engine_;
    ty_standby_options options_;
    taiyen::standby::fencing_state fencing_;
    taiyen::standby::state_folder folder_;
    taiyen::standby::standby_state state_{}; // of the last message taken; its position is not sealed
    taiyen::standby::standby_state whole_{}; // the last one between records
    uint8_t identity_[16] = {};
    taiyen::standby::message_header blocked_{}; // the timeline that this cannot follow
    bool saw_later_term_ = false;               // in a message that could not be taken
    ty_replica *replica_ = nullptr;
    std::vector<ty_feed_record> records_;
    std::vector<uint8_t> parts_; // of a record that is not complete yet
    taiyen::common::kept_failure taking_;
    taiyen::common::kept_failure late_; // a failure to make durable what was applied
    ty_feed_position durable_{};
    uint64_t saved_ms_ = 0;
    uint64_t checked_ms_ = 0; // when the last message was compared with the engine's; 0: not yet
    bool unsaved_ = false;
    bool promoted_ = false;
    bool heard_ = false; // a message of the primary, since this was opened
    ty_standby_report report_{};
};

// A publisher: one thread reads a change feed and hands its records to the engine, one takes the acknowledgements, one
// looks for a base.
#pragma once

#include "fencing.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace taiyen::standby {

// A message in flight, and the position that its records lead to.
struct in_flight {
    fencing_record record; // what the heap remembers once it is acknowledged, except for its position
    uint64_t lsn;          // of its last record
    uint32_t records;
    uint64_t record_bytes;
    uint64_t confirms; // reads that its acknowledgement confirms: all that were waiting when it was handed over
};

// Records without a gap, in one session.
struct timeline_of_records {
    uint64_t number = 0;    // changes with each timeline and each session
    message_header begun{}; // its first message, or a later one
};

} // namespace taiyen::standby

struct ty_publisher {
    ty_publisher(const char *heap_path, const ty_engine &engine, const ty_publisher_options &options);
    ~ty_publisher();
    ty_status open();
    ty_status wait(uint64_t lsn, uint32_t timeout_ms);
    ty_status commit(ty_txn *txn);
    ty_status confirm(uint32_t timeout_ms);
    ty_status ended();
    bool has_heap() const { return options_.heap != nullptr; }
    void fill_report(ty_publisher_report *report);

private:
    // ---- Threads that wait
    void waits_more(int by);
    template <class Predicate>
    ty_status wait_until(uint32_t timeout_ms, const Predicate &there);
    ty_status not_yet() const;
    bool lacks_base() const;

    // ---- The thread that sends
    void send();
    ty_status work();
    ty_status check_history(const taiyen::standby::message_header &newest);
    ty_status find_position();
    void set_behind(bool is);
    ty_status check_server(const taiyen::standby::records_end &at, bool found, bool receives);
    ty_status begin_session_of(uint64_t after, uint64_t known_at);
    ty_status begin_term();
    ty_status put_alive();
    ty_status begin_timeline(const ty_feed_position &at);
    ty_status gather(bool *more);
    ty_status read();
    void set_timeline(const taiyen::standby::message_header &begun);
    static bool take(const ty_feed_record *record, void *context);
    ty_status take(const ty_feed_record &record);
    ty_status put_parts(const ty_feed_record &record);
    ty_status end_message(const ty_feed_position &after);
    ty_status put(taiyen::standby::message_header header, std::vector<uint8_t> &message, uint32_t records,
                  uint64_t record_bytes);
    bool is_final(ty_status status);
    bool get_over(ty_status status);
    void publish_reached();

    // ---- The thread that takes acknowledgements
    void take_answers();
    ty_status remember(uint64_t session, uint64_t count, uint64_t position);
    void acknowledged(uint64_t count, uint64_t position);

    // ---- The thread that looks for a base
    void look_for_bases();
    ty_status find_base(const taiyen::standby::timeline_of_records &timeline, bool searches, uint64_t *base_at,
                        uint64_t *newest_at);
    void take_look(ty_status status, uint64_t base_at, bool moves);

    std::string path_;
    const ty_engine &engine_;
    ty_publisher_options options_;
    ty_open_options open_ = TY_OPEN_OPTIONS_INIT;
    ty_feed *feed_ = nullptr;
    taiyen::standby::fencing_state fencing_;

    // Used only by the thread that sends.
    ty_feed_position position_{}; // handed over up to here
    ty_feed_position walked_{};   // taken up to here, in the current read
    taiyen::standby::message_header last_{};
    uint64_t session_ = 0;
    uint8_t identity_[16] = {};
    std::vector<uint8_t> message_; // being filled
    uint32_t message_records_ = 0;
    uint64_t message_bytes_ = 0;
    taiyen::common::kept_failure taking_;
    uint64_t put_ms_ = 0;    // of the last message
    bool is_behind_ = false; // the engine lacks what the heap remembers, or messages that count,
    uint64_t behind_ms_ = 0; // since then

    std::atomic<uint64_t> confirm_ms_{0}; // when a read was confirmed last; relaxed order would do: it publishes
                                          // nothing else

    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<taiyen::standby::in_flight> flight_; // under lock_, as all below
    uint64_t acknowledged_ = 0;                     // messages of the session
    uint64_t known_at_ = 0;                         // the last one's position, or that of the one before the session
    bool running_ = false;
    taiyen::common::kept_failure cut_; // why the session has ended
    taiyen::common::kept_failure why_; // why publishing does not work now, or has ended
    bool ended_ = false;
    bool stop_ = false;
    uint32_t waiters_ = 0;
    uint64_t reached_ = 0; // acknowledged up to this transaction
    taiyen::standby::timeline_of_records timeline_;
    bool based_ = false;        // ST4: the timeline has a base
    uint64_t base_at_ = 0;      // where the bases' log has it: messages say so
    uint64_t base_confirm_ = 0; // the confirmation by which one of these is acknowledged; 0: no base was found
    uint64_t baseless_ms_ = 0;  // since when it is known that no base is there, and none comes; 0: not known
    taiyen::common::kept_failure look_failed_; // why that is not known
    uint64_t confirms_wanted_ = 0;             // reads to confirm (ST13: only by a message that was sent since)
    uint64_t confirms_sent_ = 0;
    uint64_t confirmed_ = 0;
    ty_publisher_report report_{};

    std::thread sender_, answers_, looker_;
};

// TinySTM (Felber, Fetzer, Riegel; write-back, locks at the first store). Compiled where its headers and its library
// are found (CMAKE_PREFIX_PATH); else the subject reports that it is missing.
#include "oltp_store.hpp"
#include "travel.hpp"

#ifdef TAIYEN_BENCH_TINYSTM
#include <csetjmp>
extern "C" {
#include <mod_mem.h>
#include <stm.h>
}
#endif

namespace bench {

namespace {

#ifdef TAIYEN_BENCH_TINYSTM

// Per thread, as long as the thread runs.
class tinystm_thread {
public:
    tinystm_thread() { stm_init_thread(); }
    ~tinystm_thread() { stm_exit_thread(); }
};

class tinystm_memory {
public:
    uint64_t load(const uint64_t *word) { return stm_load(cell(word)); }
    void store(uint64_t *word, uint64_t value) { stm_store(cell(word), value); }
    void store_new(uint64_t *word, uint64_t value) { *word = value; }
    uint64_t *allocate(size_t words) { return static_cast<uint64_t *>(stm_malloc(words * sizeof(uint64_t))); }
    void release(uint64_t *block) { stm_free(block, sizeof *block); }

private:
    static volatile stm_word_t *cell(const uint64_t *word) {
        return reinterpret_cast<volatile stm_word_t *>(const_cast<uint64_t *>(word));
    }
};

class tinystm_store : public oltp_store {
public:
    explicit tinystm_store(const oltp_settings &settings) : settings_(settings), memory_(settings, false) {}

    void open() override {
        stm_init();
        mod_mem_init(0);
        std::fill_n(memory_.words(), settings_.words, settings_.first);
    }

    void close() override { stm_exit(); }

    uint64_t add(const addition &what, commit_how) override {
        if (what.range_bytes != sizeof(uint64_t))
            throw std::logic_error("this subject adds to words");
        run([&](tinystm_memory &memory) {
            for (size_t at = 0; at < what.places.size(); at++) {
                uint64_t *word = memory_.words() + what.places[at];
                memory.store(word, memory.load(word) + what.amount_at(at));
            }
        });
        return 0;
    }

    travel_outcome travel(const travel_request &request, commit_how) override {
        volatile int64_t more = 0; // a conflict jumps back: what is in a register then is what it was
        run([&](tinystm_memory &memory) { more = travel_agency(memory, memory_.words()).serve(request); });
        return {.more_reservations = more};
    }

    const uint64_t *table() override { return memory_.words(); }

private:
    // The body keeps nothing that a jump out of it would lose.
    template <typename Body>
    static void run(Body body) {
        static thread_local tinystm_thread here;
        static_cast<void>(here);
        tinystm_memory memory;
        if (sigjmp_buf *again = stm_start(stm_tx_attr_t{}))
            sigsetjmp(*again, 0);
        body(memory);
        stm_commit();
    }

    oltp_settings settings_;
    word_memory memory_;
};

std::unique_ptr<oltp_store> make(const oltp_settings &settings) {
    return make_oltp<tinystm_store>(settings);
}

#else

std::unique_ptr<oltp_store> make(const oltp_settings &) {
    throw unavailable("TinySTM's stm.h and libstm.a were not found when this program was built");
}

#endif

} // namespace

extern const oltp_kind tinystm_oltp;
const oltp_kind tinystm_oltp = {"tinystm", make};

} // namespace bench

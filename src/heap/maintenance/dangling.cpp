// Reports variables of the process that lead to blocks that are gone. docs/design/malloc.md, "Variables".
#include "../heap.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace taiyen {
namespace {

constexpr size_t threads_most = 4096;

struct program_callback {
    os::mutex lock{os::lock_rank::dangling};
    ty_dangling_callback *function; // guarded by lock, as is context
    void *context;
};
constinit program_callback reporter{};

const char *reason_text(ty_dangling_reason reason, bool kept) {
    if (reason == TY_DANGLING_CLOSE)
        return "whose heap is closed";
    return kept ? "that a rollback took back, and which is kept until the heap is closed"
                : "that a rollback took back, and which others may get now";
}

void describe_word(const ty_dangling &one, char *text, size_t room) {
    char place[64] = "";
    if (one.offset != 0 || one.variable[0] == '\0')
        snprintf(place, sizeof place, "+0x%llx", static_cast<unsigned long long>(one.offset));
    if (one.object[0] == '\0' && one.thread_local_data)
        snprintf(text, room, "%sthread-specific data (pthread_setspecific)%s",
                 one.indirect ? "memory of the process's own that " : "", one.indirect ? " leads to" : "");
    else if (one.object[0] == '\0')
        snprintf(text, room, "memory of the process's own at %p", one.address);
    else
        snprintf(text, room, "%sthe %svariable %s%s of %s%s", one.indirect ? "memory of the process's own that " : "",
                 one.thread_local_data ? "thread-local " : "", one.variable[0] != '\0' ? one.variable : "at ", place,
                 one.object, one.indirect ? " leads to" : "");
}

void describe(const ty_dangling &one, char *text, size_t room) {
    char word[1408];
    describe_word(one, word, sizeof word);
    snprintf(text, room,
             "taiyen: %s leads to a block of %zu byte%s, %s%s%s; use the library once outside of any scope before its "
             "first use in one (taiyen/scope.h)",
             word, one.block_bytes, plural(one.block_bytes), reason_text(one.reason, one.kept),
             one.heap_path[0] != '\0' ? ": " : "", one.heap_path);
}

// Reports each variable once, however many of its words lead to blocks.
class dangling_report {
public:
    dangling_report(ty_dangling_reason reason, const char *heap_path) : reason_(reason), heap_path_(heap_path) {
        const os::lock_guard guard(reporter.lock);
        callback_ = reporter.function;
        context_ = reporter.context;
    }

    // Its texts take some KB of stack.
    [[gnu::noinline]] void report(const dangling_word &word) {
        os::variable_place place{};
        if (word.has_variable)
            os::find_variable(word.word, &place);
        if (place.name[0] != '\0' && !is_first(word, word.word.offset - place.offset))
            return;
        ty_dangling one{};
        one.struct_size = sizeof one;
        one.reason = reason_;
        one.thread_local_data = word.word.thread_local_data;
        one.kept = word.kept;
        one.indirect = word.own.address != nullptr;
        one.heap_path = heap_path_;
        one.object = place.object;
        one.variable = place.name;
        one.offset = place.offset;
        one.address = word.word.address;
        one.value = reinterpret_cast<const void *>(word.word.value);
        one.block = word.block.address;
        one.block_bytes = word.block.size_bytes;
        char text[2048];
        describe(one, text, sizeof text - 1);
        one.text = text;
        if (callback_ != nullptr)
            return callback_(&one, context_);
        const size_t length = strlen(text);
        text[length] = '\n';
        os::write_standard_error(text, length + 1);
    }

private:
    struct variable {
        uintptr_t load;
        uint64_t offset;
        bool thread_local_data, indirect;
        bool operator==(const variable &) const = default;
    };
    bool is_first(const dangling_word &word, uint64_t offset) {
        const variable of{word.word.load, offset, word.word.thread_local_data, word.own.address != nullptr};
        if (std::find(before_, before_ + count_, of) != before_ + count_)
            return false;
        before_[count_++] = of;
        return true;
    }

    const ty_dangling_reason reason_;
    const char *heap_path_;
    ty_dangling_callback *callback_;
    void *context_;
    variable before_[dangling_words::most];
    size_t count_ = 0;
};

// The same for variables without a name: adjacent words.
bool is_of_the_same(const dangling_word &one, const dangling_word &before) {
    constexpr uintptr_t near_by = 64;
    return one.block.address == before.block.address &&
           reinterpret_cast<uintptr_t>(one.word.address) - reinterpret_cast<uintptr_t>(before.word.address) <= near_by;
}

// Searches backwards from blocks of the process's own memory to variables that lead to them: what leads to the blocks,
// then what leads to that, and so on, with a scan of all of the process's own memory for each level. It reads no more
// of it than bytes_most; if it finds no variable then, the report says so.
class finding_variables {
public:
    explicit finding_variables(dangling_words *words)
        : words_(*words), count_(std::min(words->count, dangling_words::most)) {}
    ~finding_variables() {
        if (steps_ != nullptr)
            os::unmap_memory(steps_, steps_bytes);
    }
    finding_variables(const finding_variables &) = delete;
    finding_variables &operator=(const finding_variables &) = delete;

    void extent() {
        for (size_t n = 0; n < count_; ++n)
            if (words_.found[n].own.address != nullptr && provide()) {
                add(words_.found[n].own, 1u << n);
                open_ |= 1u << n;
            }
        for (unsigned level = 0; level < levels_most && steps_count_ != level_; ++level) {
            std::sort(steps_ + level_, steps_ + steps_count_,
                      [](const step &a, const step &b) { return a.begin < b.begin; });
            level_end_ = steps_count_;
            const auto *begin = reinterpret_cast<const void *>(steps_[level_].begin);
            const auto *end = reinterpret_cast<const void *>(steps_[level_end_ - 1].end);
            heap_each_variable_word(begin, end, name, this);
            if (open_ == 0)
                return;
            heap_each_malloc_word({steps_[level_].begin, steps_[level_end_ - 1].end, wants, go_back, this}, &left_);
            level_ = level_end_;
        }
    }

private:
    struct step {
        uintptr_t begin, end;
        uint32_t of; // bit mask of the words that it leads to
    };
    static constexpr size_t steps_bytes = size_t{24} << 10;
    static constexpr size_t steps_most = steps_bytes / sizeof(step);
    static constexpr unsigned levels_most = 12;
    static constexpr size_t bytes_most = size_t{256} << 20;
    static_assert(dangling_words::most <= 32);

    bool provide() {
        void *made = nullptr;
        if (steps_ == nullptr && os::map_memory(steps_bytes, os::memory_hint::none, &made) == TY_OK)
            steps_ = static_cast<step *>(made);
        return steps_ != nullptr;
    }
    // A step that is in an earlier level is added again for words to which it was not known to lead.
    void add(const ty_block &block, uint32_t of) {
        const auto begin = reinterpret_cast<uintptr_t>(block.address);
        for (step *known = steps_; known != steps_ + steps_count_; ++known)
            if (known->begin == begin && known >= steps_ + level_end_)
                return static_cast<void>(known->of |= of);
            else if (known->begin == begin)
                of &= ~known->of;
        if (of != 0 && steps_count_ < steps_most)
            steps_[steps_count_++] = {begin, begin + block.size_bytes, of};
    }
    const step *find(uint64_t value) const {
        const step *after = std::upper_bound(steps_ + level_, steps_ + level_end_, value,
                                             [](uint64_t v, const step &s) { return v < s.begin; });
        return after != steps_ + level_ && value < after[-1].end ? after - 1 : nullptr;
    }
    static void name(void *context, const os::variable_word &variable) {
        auto &self = *static_cast<finding_variables *>(context);
        const step *found = self.find(variable.value);
        for (size_t n = 0; found != nullptr && n < self.count_; ++n)
            if ((found->of & self.open_ & 1u << n) != 0) {
                dangling_word &word = self.words_.found[n];
                word.word = {word.word.address,          word.word.value,         variable.load, variable.offset,
                             variable.thread_local_data, variable.thread_specific};
                word.has_variable = true;
                self.open_ &= ~(1u << n);
            }
    }
    static bool wants(void *context, uint64_t value) {
        const auto &self = *static_cast<finding_variables *>(context);
        const step *found = self.find(value);
        return found != nullptr && (found->of & self.open_) != 0;
    }
    static void go_back(void *context, const os::malloc_word &word) {
        auto &self = *static_cast<finding_variables *>(context);
        self.add({const_cast<void *>(word.block), word.block_bytes}, self.find(word.value)->of);
    }

    dangling_words &words_;
    const size_t count_;
    step *steps_ = nullptr; // the level's steps, then what leads to them
    size_t steps_count_ = 0, level_ = 0, level_end_ = 0;
    uint32_t open_ = 0; // words without a variable yet
    size_t left_ = bytes_most;
};

struct looking {
    ty_heap *heap;
    dangling_words *found;
};

void look_at_word(void *context, const os::variable_word &word) {
    const auto &[heap, found] = *static_cast<looking *>(context);
    ty_block block;
    if (heap_find_block(heap, reinterpret_cast<const void *>(word.value), &block))
        found->add({word, block, {}, false, true});
}

// Lists the words of the process's own memory first: its scan must not wait for a lock.
class listing {
public:
    ~listing() {
        if (words_ != nullptr)
            os::unmap_memory(words_, bytes);
    }
    listing() = default;
    listing(const listing &) = delete;
    listing &operator=(const listing &) = delete;

    void extent(ty_heap *heap, dangling_words *found) {
        void *made = nullptr;
        if (os::map_memory(bytes, os::memory_hint::none, &made) != TY_OK)
            return;
        words_ = static_cast<os::malloc_word *>(made);
        const auto begin = reinterpret_cast<uintptr_t>(heap_base(heap));
        size_t left = TY_DANGLING_MALLOC_BYTES_MAX;
        heap_each_malloc_word({begin, begin + heap_used_bytes(heap), wants, list, this}, &left);
        ty_block block;
        for (const os::malloc_word *word = words_; word != words_ + count_; ++word)
            if (heap_find_block(heap, reinterpret_cast<const void *>(word->value), &block))
                found->add({{word->address, word->value, 0, 0, false, false},
                            block,
                            {const_cast<void *>(word->block), word->block_bytes},
                            false,
                            false});
    }

private:
    static constexpr size_t bytes = size_t{128} << 10;
    static constexpr size_t most = bytes / sizeof(os::malloc_word);
    static bool wants(void *context, uint64_t) { return static_cast<listing *>(context)->count_ != most; }
    static void list(void *context, const os::malloc_word &word) {
        auto &self = *static_cast<listing *>(context);
        self.words_[self.count_++] = word;
    }

    os::malloc_word *words_ = nullptr;
    size_t count_ = 0;
};

// Pointers from a program's own objects to a closed heap are as frequent as harmless: reported only if a callback is
// set.
bool wants_malloc_words() {
#if defined(TAIYEN_DEBUG)
    return true;
#else
    const os::lock_guard guard(reporter.lock);
    return reporter.function != nullptr;
#endif
}

} // namespace

bool heap_each_variable_word(const void *begin, const void *end, os::variable_visit *visit, void *context) {
    constexpr size_t bytes = 2 * threads_most * sizeof(uintptr_t);
    void *memory = nullptr;
    if (os::map_memory(bytes, os::memory_hint::none, &memory))
        return false;
    auto *threads = static_cast<uintptr_t *>(memory), *others = threads + threads_most;
    size_t count = heap_thread_pointers(threads, threads_most), more = 0;
    const os::drop_in_calls *drop_in = os::drop_in.load(std::memory_order_relaxed);
    if (drop_in != nullptr && drop_in->thread_pointers != heap_thread_pointers) // otherwise they are the same
        more = drop_in->thread_pointers(others, threads_most);
    const bool all = count <= threads_most && more <= threads_most;
    count = std::min(count, threads_most);
    for (const uintptr_t *other = others; other != others + std::min(more, threads_most); ++other)
        if (count < threads_most && std::find(threads, threads + count, *other) == threads + count)
            threads[count++] = *other;
    const bool whole = os::each_variable_word(reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(end),
                                              threads, count, visit, context);
    os::unmap_memory(memory, bytes);
    return whole && all;
}

bool heap_each_malloc_word(const os::malloc_word_search &wanted, size_t *left) {
    const os::drop_in_calls *drop_in = os::drop_in.load(std::memory_order_relaxed);
    return drop_in == nullptr || drop_in->each_word(wanted, left);
}

void heap_report_dangling(dangling_words *words, ty_dangling_reason reason, const char *heap_path) {
    finding_variables(words).extent();
    dangling_report of(reason, heap_path);
    for (size_t n = 0; n < words->count && n < dangling_words::most; ++n)
        if (n == 0 || !is_of_the_same(words->found[n], words->found[n - 1]))
            of.report(words->found[n]);
}

void heap_set_dangling_callback(ty_dangling_callback *callback, void *context) {
    const os::lock_guard guard(reporter.lock);
    reporter.function = callback;
    reporter.context = context;
}

// Finds them while the heap still knows its blocks, and reports them when it is gone.
ty_status heap_end_reporting(ty_heap *heap, const char *path, ty_status (*end)(void *context), void *context) {
    dangling_words found;
    looking look{heap, &found};
    char kept_path[1024];
    snprintf(kept_path, sizeof kept_path, "%s", path);
    const auto *base = static_cast<const char *>(heap_base(heap));
    heap_each_variable_word(base, base + heap_used_bytes(heap), look_at_word, &look);
    if (wants_malloc_words())
        listing().extent(heap, &found);
    const ty_status status = end(context);
    if (!heap_is_open(heap))
        heap_report_dangling(&found, TY_DANGLING_CLOSE, kept_path);
    return status;
}

} // namespace taiyen

// Taiyen in C++: going back, header-only, C++17 and later. taiyen.hpp includes it.
//
// Purpose: an attempt that cannot be left half done.
//
// Vocabulary: as in marks.h. `attempt` is a mark that is returned to unless what was attempted is kept.
//
// Guarantees: those of the C API, whose functions these call and whose comments apply; exceptions as in taiyen.hpp.
#ifndef TAIYEN_MARKS_HPP
#define TAIYEN_MARKS_HPP

#include "taiyen.hpp"

#include <atomic>

namespace taiyen {
inline namespace v0 {

// An attempt under way. Its destructor goes back, unless it has ended; if that fails, the mark stays, so call go_back()
// to get the error. Attempts may be nested: the inner one ends first.
class attempt {
public:
    // Marks the heap, under a name of its own.
    static result<attempt> begin(ty_heap *heap) {
        static std::atomic<std::uint64_t> numbers{0};
        for (;;) {
            std::string name = "attempt " + std::to_string(++numbers);
            const ty_status status = ty_mark(heap, name.c_str(), nullptr);
            if (status == TY_OK)
                return attempt(heap, std::move(name));
            if (status != TY_E_EXISTS)
                return error::last();
        }
    }
    // Takes the attempt over; the other one has then ended.
    attempt(attempt &&other) noexcept : heap_(std::exchange(other.heap_, nullptr)), name_(std::move(other.name_)) {}
    // The same; goes back from its own one first.
    attempt &operator=(attempt &&other) noexcept {
        if (this != &other) {
            end();
            heap_ = std::exchange(other.heap_, nullptr);
            name_ = std::move(other.name_);
        }
        return *this;
    }
    // Goes back, unless the attempt has ended.
    ~attempt() { end(); }

    // Whether it is still under way.
    explicit operator bool() const noexcept { return heap_ != nullptr; }
    // Ends it; the heap stays as it is.
    result<void> keep() { return ended(ty_drop_mark(heap_, name_.c_str())); }
    // Ends it; the heap becomes as it was at the begin.
    result<void> go_back() {
        const ty_status status = ty_return_to(heap_, name_.c_str(), nullptr);
        return status == TY_OK ? keep() : result<void>::of(status);
    }

private:
    attempt(ty_heap *heap, std::string &&name) noexcept : heap_(heap), name_(std::move(name)) {}
    result<void> ended(ty_status status) {
        if (status == TY_OK)
            heap_ = nullptr;
        return result<void>::of(status);
    }
    void end() noexcept {
        if (heap_)
            static_cast<void>(go_back());
    }
    ty_heap *heap_;
    std::string name_;
};

template <class Function>
result<void> heap_view::attempt(Function &&function) const {
    result<taiyen::attempt> begun = taiyen::attempt::begin(heap_);
    if (!begun)
        return begun.error();
    taiyen::attempt tried = std::move(begun).value();
    using outcome = std::invoke_result_t<Function &>;
    if constexpr (std::is_void_v<outcome>) {
        function();
    } else if constexpr (std::is_same_v<outcome, bool>) {
        if (!function())
            return tried.go_back();
    } else if (outcome returned = function(); !returned) {
        if (result<void> back = tried.go_back(); !back)
            return back;
        return returned.error();
    }
    return tried.keep();
}

template <class Function>
result<void> heap_view::each_mark(Function &&function) const {
    using call = detail::callback<std::remove_reference_t<Function>>;
    call c{function};
    return c.finish(ty_each_mark(
        heap_, [](const ty_mark_info *m, void *context) { return call::of(context).call(*m); }, &c));
}

} // namespace v0
} // namespace taiyen

#endif

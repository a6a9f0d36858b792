// An unmodified hnswlib index of vectors: it allocates by malloc and new, has virtual functions, and points to its
// distance function. Nothing here knows of heaps. hnswlib's headers define functions, so only one source file of a
// program can include them.
#pragma once

#include "source.hpp"
#include <memory>
#include <string>

namespace hnswlib {
template <class Distance>
class HierarchicalNSW;
class L2Space;
} // namespace hnswlib

namespace vectors {

class collection {
public:
    static constexpr const char *root = "vectors";

    explicit collection(const source &from, size_t room = 1000);
    // From hnswlib's own storage of an index: a file by save(), with room for so many.
    collection(const source &from, const std::string &saved, size_t room);
    ~collection();

    // Mostly adds the next vector of the source, and makes room for more if there is none; sometimes changes a vector,
    // or removes one, or puts it back.
    void step(const source &from);
    uint64_t steps() const { return steps_; }

    // Adds the next one.
    void add(const source &from);
    size_t count() const;

    // Writes the numbers of the nearest vectors that it finds, and returns how many. The caller provides the memory for
    // them: what was allocated here would lie where the index does. The index uses memory of its own meanwhile, so it
    // must be queried where it was made: in a scope.
    size_t nearest(const float *vector, size_t wanted, uint64_t *numbers) const;

    // The first difference, compared by bytes; empty: none.
    std::string difference_from(const collection &other) const;

    // hnswlib's own storage of an index.
    void save(const std::string &path) const;

private:
    using index = hnswlib::HierarchicalNSW<float>;
    void change(const source &from);
    void take_out_or_put_back();

    std::unique_ptr<hnswlib::L2Space> space_; // the index points to it
    std::unique_ptr<index> index_;
    uint64_t steps_ = 0;
};

} // namespace vectors

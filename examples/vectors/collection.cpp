#include "collection.hpp"
#include <cstring>
#include <hnswlib/hnswlib.h>

namespace vectors {
namespace {

constexpr size_t links = 16;
constexpr size_t candidates = 100;

// The memory of one element at level 0: links, vector and label.
const char *element(const hnswlib::HierarchicalNSW<float> &index, size_t number) {
    return index.data_level0_memory_ + number * index.size_data_per_element_;
}

} // namespace

collection::collection(const source &from, size_t room)
    : space_(std::make_unique<hnswlib::L2Space>(from.dimensions())),
      index_(std::make_unique<index>(space_.get(), room, links, candidates)) {}

collection::collection(const source &from, const std::string &saved, size_t room)
    : space_(std::make_unique<hnswlib::L2Space>(from.dimensions())),
      index_(std::make_unique<index>(space_.get(), saved, false, room)) {}

collection::~collection() = default;

size_t collection::count() const {
    return index_->cur_element_count;
}

void collection::add(const source &from) {
    if (count() == index_->max_elements_)
        index_->resizeIndex(2 * count());
    float vector[dimensions_max];
    from.make(count(), vector);
    index_->addPoint(vector, count());
}

void collection::step(const source &from) {
    const uint64_t kind = steps_ % 16;
    if (kind == 9 && count() > 0)
        change(from);
    else if (kind == 13 && count() > 0)
        take_out_or_put_back();
    else
        add(from);
    ++steps_;
}

void collection::change(const source &from) {
    float vector[dimensions_max];
    from.make(~steps_, vector);
    index_->addPoint(vector, mixed(1, steps_) % count());
}

void collection::take_out_or_put_back() {
    const auto label = mixed(2, steps_) % count();
    const auto found = index_->label_lookup_.find(label);
    if (index_->isMarkedDeleted(found->second))
        index_->unmarkDelete(label);
    else
        index_->markDelete(label);
}

size_t collection::nearest(const float *vector, size_t wanted, uint64_t *numbers) const {
    auto found = index_->searchKnn(vector, wanted);
    const size_t count = found.size();
    for (size_t i = count; i > 0; --i, found.pop()) // the farthest comes first
        numbers[i - 1] = found.top().second;
    return count;
}

std::string collection::difference_from(const collection &other) const {
    const index &one = *index_, &two = *other.index_;
    if (steps_ != other.steps_ || count() != other.count() || one.max_elements_ != two.max_elements_ ||
        one.num_deleted_ != two.num_deleted_)
        return "the numbers of vectors differ";
    if (one.enterpoint_node_ != two.enterpoint_node_ || one.maxlevel_ != two.maxlevel_)
        return "the ways into the graph differ";
    if (one.label_lookup_ != two.label_lookup_ || one.element_levels_ != two.element_levels_)
        return "the labels or levels differ";
    if (one.level_generator_ != two.level_generator_ ||
        one.update_probability_generator_ != two.update_probability_generator_)
        return "the states of the random generators differ";
    for (size_t i = 0; i < count(); ++i) {
        const auto level = static_cast<size_t>(one.element_levels_[i]);
        if (std::memcmp(element(one, i), element(two, i), one.size_data_per_element_) != 0 ||
            (level > 0 && std::memcmp(one.linkLists_[i], two.linkLists_[i], level * one.size_links_per_element_) != 0))
            return "vector " + std::to_string(i) + " or its links differ";
    }
    return {};
}

void collection::save(const std::string &path) const {
    index_->saveIndex(path);
}

} // namespace vectors

// The content of a simulated file: pages by number, sparse, shared between copies until one of them changes. A copy is
// a few hundred pointers, so that a disk can be rebuilt at any event cheaply.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

namespace taiyen::os::sim {

inline constexpr uint64_t page_size = 4096;

struct page {
    std::array<unsigned char, page_size> bytes{};
};
using page_ref = std::shared_ptr<const page>; // never changed once it is in a file: copies share it

const page_ref &zero_page();
page_ref make_page(const void *bytes);

class content {
public:
    uint64_t size() const { return size_; }
    uint64_t allocated_pages() const { return allocated_; }

    const page *find(uint64_t number) const; // NULL: a hole
    void put(uint64_t number, page_ref replacement);
    // The first page at or after number that is not a hole; UINT64_MAX if there is none.
    uint64_t next(uint64_t number) const;

    void read(uint64_t offset, void *buffer, uint64_t bytes) const;
    void extend(uint64_t size) { size_ = size > size_ ? size : size_; }
    void resize(uint64_t size); // content after the new end is lost
    void fill_holes(uint64_t offset, uint64_t bytes);
    uint64_t holes(uint64_t offset, uint64_t bytes) const;
    void punch(uint64_t offset, uint64_t bytes);
    void drop_beyond_size(); // content after the end of the file reads as zeros if the file grows again

private:
    static constexpr uint64_t chunk_pages = 64;
    struct chunk {
        std::array<page_ref, chunk_pages> pages;
    };
    void zero_part(uint64_t number, uint64_t from, uint64_t to);
    void drop_pages(uint64_t first, uint64_t last);

    std::map<uint64_t, std::shared_ptr<chunk>> chunks_;
    uint64_t size_ = 0;
    uint64_t allocated_ = 0;
};

} // namespace taiyen::os::sim

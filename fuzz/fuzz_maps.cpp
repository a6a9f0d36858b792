// Goal: no forged map makes a move run for ever, or leave its memory.
// Method: a heap with maps whose keys are addresses; each four bytes of the input make one word of their blocks lead to
// another block, or into it. Then a pointer audit, and a fix that moves nothing and calls the hooks of the maps.
#include <cstdlib>
#include <cstring>
#include <sanitizer/lsan_interface.h>
#include <taiyen/containers.hpp>
#include <taiyen/types.hpp>
#include <vector>

namespace {

void require(bool held) {
    if (!held)
        abort();
}

struct maps {
    taiyen::hash_map<const void *, long> numbers;
    taiyen::ordered_map<const void *, long> ranks;
    maps *next;
};

struct kept_block {
    ty_block block;
    std::vector<char> bytes;
};

class heap_of_maps {
public:
    heap_of_maps() {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = size_t{64} << 20;
        options.concurrent = true;
        require(ty_heap_create(&options, &heap) == TY_OK);
        taiyen::heap_view(heap).atomically([&](taiyen::atomic_txn &txn) {
            maps &first = txn.root<maps>("maps");
            first.next = txn.make<maps>();
            for (long n = 0; n < 300; ++n) {
                const void *key = txn.alloc(16);
                first.numbers.put(txn, key, n);
                first.ranks.put(txn, key, n);
                first.next->ranks.put(txn, key, n);
            }
        });
        require(ty_types_create(&descriptors) == TY_OK);
        require(ty_types_root(descriptors, "maps", taiyen::descriptor_of<maps>(), nullptr) == TY_OK);
        auto keep = [](const ty_block *block, void *context) {
            auto *at = static_cast<const char *>(block->address);
            static_cast<heap_of_maps *>(context)->blocks.push_back({*block, {at, at + block->size_bytes}});
            return true;
        };
        require(ty_each_block(heap, keep, this) == TY_OK);
        for (const kept_block &one : blocks)
            for (size_t at = 0; at + 8 <= one.bytes.size(); at += 8) {
                auto **word = reinterpret_cast<char **>(static_cast<char *>(one.block.address) + at);
                if (ty_usable_size(*word) != 0)
                    links.push_back(word);
            }
    }
    void restore() const {
        for (const kept_block &one : blocks)
            memcpy(one.block.address, one.bytes.data(), one.bytes.size());
    }
    void lead(uint16_t link, uint16_t block) const {
        const ty_block &to = blocks[block % 4096 % blocks.size()].block;
        *links[link % links.size()] = static_cast<char *>(to.address) + block / 4096 % (to.size_bytes / 8) * 8;
    }

    ty_heap *heap = nullptr;
    ty_types *descriptors = nullptr;
    std::vector<kept_block> blocks;
    std::vector<char **> links;
};

void *stay(const void *address, void *) {
    return const_cast<void *>(address);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    // Lives as long as the process; some of malloc's memory is reachable only from memory that it maps itself, which
    // LeakSanitizer does not scan.
    static const heap_of_maps all = [] {
        __lsan::ScopedDisabler disabled;
        return heap_of_maps();
    }();
    all.restore();
    for (; size >= 4; data += 4, size -= 4) {
        uint16_t words[2];
        memcpy(words, data, sizeof words);
        all.lead(words[0], words[1]);
    }
    const ty_status status = ty_audit_pointers(all.heap, all.descriptors, nullptr, nullptr, nullptr);
    require(status == TY_OK || status == TY_E_MISMATCH);
    require(ty_fix_pointers(all.heap, all.descriptors, stay, nullptr, nullptr) == TY_OK);
    require(ty_heap_verify(all.heap, nullptr, nullptr) == TY_OK);
    return 0;
}

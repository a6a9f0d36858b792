// Whether the heaps of a group are of one moment: compares what their tables say of the distributed transactions that
// they share.
//
// JO6: heaps continue together only if each of them has, of every group that two of them were in, the same last
//     distributed transaction, as themselves or as what they are copies of. Otherwise they are of different moments,
//     and the group is refused.
//     Where a member lay, that member must lie, or a copy of it. Another heap there is refused: it was recreated, or
//     is of another group, while what was acknowledged is in the files that are missing.
//     Heaps that continue as they are (`restored`) get the same mark in all that differs: it stands in for the number
//     until the next distributed transaction of that group. The numbers stay: resource managers still ask for them.
// JO7: each open of a group is a distributed transaction of all its heaps, durable before the open returns. So a copy
//     of a member from before the open has a number that no heap can take for that of the distributed transaction
//     before its own.
#include "group.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace taiyen::twophase {
namespace {

using role = uint8_t[16];

// The member that the heap stands for in the entry.
member role_of(const dtxn_entry &entry) {
    return dtxn_member(entry, entry.own);
}

bool same_identity(const uint8_t *a, const uint8_t *b) {
    return memcmp(a, b, sizeof(role)) == 0;
}

bool has_member(const dtxn_entry &entry, const uint8_t *identity) {
    for (uint32_t n = 0; n < entry.members; ++n)
        if (n != entry.own && same_identity(dtxn_member(entry, n).identity, identity))
            return true;
    return false;
}

class comparison {
public:
    comparison(const ty_group &group, group_moment *found) : group_(group), found_(found) {}

    ty_status run() {
        for (size_t n = 0; n < group_.count; ++n) {
            const dtxn_entry *each, *end;
            if (ty_status status = dtxn_entries(group_.heaps[n], &each, &end))
                return status;
            for (; each != end; each = dtxn_next(each))
                if (ty_status status = each->number ? look(n, *each) : TY_OK)
                    return status;
        }
        return TY_OK;
    }

private:
    // Compares what other heaps have of the same group.
    ty_status look(size_t n, const dtxn_entry &entry) {
        const group_key key = dtxn_key(entry);
        for (size_t other = 0; other < group_.count; ++other) {
            dtxn_entry *there;
            if (other == n)
                continue;
            if (ty_status status = dtxn_find(group_.heaps[other], key, &there))
                return status;
            if (there && there->number) {
                // A heap and a copy of it stand for the same member, and are not partners.
                if (!(fault("heaps_of_other_moments_are_a_group") && there->count != entry.count) &&
                    !is_same_moment(entry.number, entry.apart, there->number, there->apart) &&
                    !same_identity(role_of(*there).identity, role_of(entry).identity))
                    if (ty_status status = differ(n, entry, other, there->count))
                        return status;
            } else if (!entry.apart && has_member(entry, files_of(group_.heaps[other]).identity)) {
                if (ty_status status = differ(n, entry, other, 0))
                    return status;
            }
        }
        if (ty_status status = entry.apart ? TY_OK : look_at_places(n, entry))
            return status;
        return is_copied(n, entry) ? keep(found_->copied, &found_->copied_count, key) : TY_OK;
    }

    // JO6: checks the places of members that are not in the group.
    ty_status look_at_places(size_t n, const dtxn_entry &entry) {
        for (uint32_t m = 0; m < entry.members; ++m) {
            if (m == entry.own || is_there(dtxn_key(entry), dtxn_member(entry, m).identity))
                continue;
            for (const placing how : {placing::alike, placing::beside}) {
                char *place;
                if (ty_status status = path_after_move(dtxn_member(entry, m).image, role_of(entry).image,
                                                       path_of(group_.heaps[n]), how, &place))
                    return status;
                const size_t other = place ? heap_at(place) : group_.count;
                free(place);
                if (other == group_.count || other == n)
                    continue;
                found_->is_another |= !found_->differing_count;
                if (ty_status status = differ(n, entry, other, 0))
                    return status;
            }
        }
        return TY_OK;
    }
    size_t heap_at(const char *path) const {
        size_t n = 0;
        while (n < group_.count && strcmp(path_of(group_.heaps[n]), path) != 0)
            ++n;
        return n;
    }
    bool is_there(const group_key &key, const uint8_t *identity) const {
        for (size_t n = 0; n < group_.count; ++n)
            if (same_identity(files_of(group_.heaps[n]).identity, identity))
                return true;
        return is_played(key, identity);
    }

    ty_status differ(size_t n, const dtxn_entry &entry, size_t other, uint64_t count) {
        const bool is_older = entry.count < count;
        found_->dtxns = std::max({found_->dtxns, entry.count, count});
        if (!found_->differing_count) {
            found_->older = is_older ? n : other;
            found_->newer = is_older ? other : n;
            found_->older_dtxn = is_older ? entry.count : count;
            found_->newer_dtxn = is_older ? count : entry.count;
        }
        return keep(found_->differing, &found_->differing_count, dtxn_key(entry));
    }

    // Whether these heaps are copies of all the entry's members: then they continue in their place.
    bool is_copied(size_t n, const dtxn_entry &entry) const {
        if (same_identity(role_of(entry).identity, files_of(group_.heaps[n]).identity))
            return false;
        for (uint32_t m = 0; m < entry.members; ++m)
            if (!is_played(dtxn_key(entry), dtxn_member(entry, m).identity))
                return false;
        return true;
    }
    bool is_played(const group_key &key, const uint8_t *identity) const {
        for (size_t n = 0; n < group_.count; ++n) {
            dtxn_entry *entry;
            if (!dtxn_find(group_.heaps[n], key, &entry) && entry && same_identity(role_of(*entry).identity, identity))
                return true;
        }
        return false;
    }

    static ty_status keep(group_key *keys, size_t *count, const group_key &key) {
        for (size_t n = 0; n < *count; ++n)
            if (keys[n] == key)
                return TY_OK;
        if (*count == group_moment::keys_max)
            return failure(TY_E_SPACE, "make a group: its heaps were in too many groups before")
                .remedy("make other groups of them; %zu in common are looked at", group_moment::keys_max);
        keys[(*count)++] = key;
        return TY_OK;
    }

    const ty_group &group_;
    group_moment *found_;
};

} // namespace

// Within read sections of all heaps, taken in the order in which distributed transactions take their reader-writer
// locks: so no distributed transaction lies in between.
ty_status moments_compare(const ty_group &group, group_moment *found) {
    size_t within = 0;
    ty_status status = TY_OK;
    while (!status && within < group.count)
        if (!(status = ty_read_begin(group.heaps[group.order[within]])))
            ++within;
    if (!status)
        status = comparison(group, found).run();
    while (within > 0)
        ty_read_end(group.heaps[group.order[--within]]);
    return status;
}

// JO6: heaps of a group continue together only if they are of one moment.
ty_status moments_refuse(const ty_group &group, const group_moment &found) {
    if (!found.differing_count)
        return TY_OK;
    if (found.is_another)
        return failure(TY_E_MISMATCH,
                       "make a group: another heap lay here when %s was in its last distributed transaction",
                       path_of(group.heaps[found.newer]))
            .at(path_of(group.heaps[found.older]))
            .remedy("put that one back, with its journal and log; to go on with this one in its place: taiyen resolve "
                    "--restored, with all heaps of the group");
    const char *how = found.older_dtxn == found.newer_dtxn ? "another" : "a later";
    return failure(TY_E_MISMATCH,
                   "make a group: its last distributed transaction is number %llu, and a heap of the group has %s one",
                   (unsigned long long)found.older_dtxn, how)
        .at(path_of(group.heaps[found.older]))
        .remedy("put back its files of the moment of %s, or all heaps from one backup; to go on with them as they are: "
                "taiyen resolve --restored, with all of them",
                path_of(group.heaps[found.newer]));
}

} // namespace taiyen::twophase

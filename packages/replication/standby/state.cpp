// The state of a standby beside its heap: an object in a folder (ship.h).
#include "receiving.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace taiyen::standby {

namespace {

constexpr const char *object_name = "state";

uint64_t checksum_of(const standby_state &state) {
    return XXH3_64bits(&state, offsetof(standby_state, checksum));
}

} // namespace

std::string state_path_of(const char *heap_path, const ty_standby_options &options) {
    return options.state_path ? options.state_path : std::string(heap_path) + "-standby";
}

ty_status state_folder::open(const std::string &path) {
    path_ = path;
    return ty_folder_open(path.c_str(), true, &folder_);
}

ty_status state_folder::read(standby_state *state) const {
    size_t got = 0;
    if (ty_status status = folder_->get(folder_->context, object_name, 0, state, sizeof *state, &got)) {
        return status == TY_E_NOT_FOUND ? fail(status, "open a standby: no state of it is kept", path_,
                                               "make it with ty_standby_make (taiyen standby)")
                                        : status;
    }
    if (got == sizeof *state && state->magic == state_magic && state->version == state_version &&
        state->checksum == checksum_of(*state))
        return TY_OK;
    return fail(TY_E_DAMAGED, "open a standby: its state is damaged, or of another version", path_,
                "move the standby's files away, make a new one, and keep these until that has what they have");
}

ty_status state_folder::write(standby_state state) const {
    void *object = nullptr;
    state.magic = state_magic;
    state.version = state_version;
    state.reserved = 0;
    state.checksum = checksum_of(state);
    if (ty_status status = folder_->put_begin(folder_->context, object_name, &object))
        return status;
    const ty_status status = folder_->put_bytes(folder_->context, object, &state, sizeof state);
    const ty_status ended = folder_->put_end(folder_->context, object, status == TY_OK);
    return status ? status : ended;
}

ty_status state_folder::remove() const {
    return folder_->remove(folder_->context, object_name);
}

} // namespace taiyen::standby

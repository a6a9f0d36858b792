// The page of `taiyen live`: one self-contained text. CMake puts in its parts, from live/.
#pragma once

#include "common/json.hpp"

#include <nlohmann/json.hpp>

namespace cli {

struct live_state {
    json::document metrics;
    json::document map;
    json::document extents;
};

// is_saved: a saved page gets no events, and shows what it has. nonce: for its script and style; empty for a saved
// page.
std::string live_page(const live_state &state, const std::string &nonce, bool is_saved);

} // namespace cli

// The page of `taiyen live`: one text that needs nothing else. Its parts lie in live/, and are put in by CMake.
#pragma once

#include "json.hpp"

#include <nlohmann/json.hpp>

namespace cli {

struct live_state {
    json::document metrics;
    json::document map;
    json::document extents;
};

// is_saved: it gets no events, and shows what it has. nonce: of its script and style; empty for a saved one.
std::string live_page(const live_state &state, const std::string &nonce, bool is_saved);

} // namespace cli

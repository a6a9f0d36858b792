#include "topojson.hpp"
#include "antimeridian.hpp"
#include "read_file.hpp"
#include <map>
#include <nlohmann/json.hpp>

namespace draw {
namespace {

using demo::failure;
using nlohmann::json;

uint32_t colour_of(const std::string &name) {
    constexpr uint32_t palette[] = {0x8fb8a8, 0xe0b878, 0xc98f8f, 0x9fb0d8, 0xb8c878, 0xd0a0c8, 0x88b8d0, 0xd8c8a0};
    uint32_t hash = 2166136261; // FNV-1a
    for (char letter : name)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619;
    return palette[hash % std::size(palette)];
}

// In TopoJSON a polygon is rings, a ring is a sequence of arcs, and an arc, a sequence of points, is shared by all
// polygons that it borders. The number ~n stands for arc n reversed.
class topology {
public:
    explicit topology(const json &from) {
        const json &scale = from.at("transform").at("scale");
        const json &offset = from.at("transform").at("translate");
        for (const json &steps : from.at("arcs")) {
            std::vector<point> &arc = arcs_.emplace_back();
            double x = 0;
            double y = 0;
            for (const json &step : steps) {
                x += step.at(0).get<double>();
                y += step.at(1).get<double>();
                arc.push_back({x * scale.at(0).get<double>() + offset.at(0).get<double>(),
                               y * scale.at(1).get<double>() + offset.at(1).get<double>()});
            }
            if (arc.size() < 2)
                throw failure("arc " + std::to_string(arcs_.size() - 1) + " has fewer than two points");
        }
    }

    map_layer read_object(const std::string &name, const json &object) {
        map_layer read{name, {}};
        bool collection = object.at("type") == "GeometryCollection";
        for (const json &geometry : collection ? object.at("geometries") : json::array({object})) {
            const json &type = geometry.at("type");
            if (type != "Polygon" && type != "MultiPolygon")
                throw failure("it has a geometry of type " + type.dump() + "; only polygons are understood");
            std::string called = geometry.contains("properties") ? geometry["properties"].value("name", name) : name;
            for (const json &polygon : type == "Polygon" ? json::array({geometry.at("arcs")}) : geometry.at("arcs"))
                for (const rings &piece : cut_at_antimeridian(read_polygon(called, polygon)))
                    read.shapes.push_back({called, colour_of(called), true, piece});
        }
        return read;
    }

    // The arcs that two shapes of different names share, among all that were read since the last call.
    map_layer take_borders() {
        map_layer borders{"borders", {}};
        for (const auto &[arc, names] : users_)
            if (names.size() == 2 && names[0] != names[1])
                borders.shapes.push_back({std::min(names[0], names[1]) + " - " + std::max(names[0], names[1]),
                                          0x404040,
                                          false,
                                          {arcs_[arc]}});
        users_.clear();
        return borders;
    }

private:
    rings read_polygon(const std::string &name, const json &from) {
        rings polygon;
        for (const json &ring : from) {
            std::vector<point> &points = polygon.emplace_back();
            for (const json &number : ring)
                append_arc(points, number.get<int64_t>(), name);
            if (points.size() > 1 && points.front() == points.back())
                points.pop_back(); // areas are closed by themselves
            if (points.size() < 3)
                throw failure(name + " has a ring of fewer than three points");
        }
        if (polygon.empty())
            throw failure(name + " has a polygon without a ring");
        return polygon;
    }

    void append_arc(std::vector<point> &points, int64_t number, const std::string &name) {
        auto index = static_cast<uint64_t>(number < 0 ? ~number : number);
        if (index >= arcs_.size())
            throw failure(name + " has an arc that is not there: " + std::to_string(number));
        users_[index].push_back(name);
        std::vector<point> arc = arcs_[index];
        if (number < 0)
            std::reverse(arc.begin(), arc.end());
        if (!points.empty() && points.back() == arc.front())
            points.pop_back();
        points.insert(points.end(), arc.begin(), arc.end());
    }

    std::vector<std::vector<point>> arcs_;
    std::map<uint64_t, std::vector<std::string>> users_;
};

} // namespace

std::vector<map_layer> read_countries(const std::string &path) {
    std::string text = demo::read_whole(path);
    try {
        json parsed = json::parse(text);
        topology map(parsed);
        map_layer land = map.read_object("land", parsed.at("objects").at("land"));
        for (shape &each : land.shapes)
            each.colour = 0xc8c0b0;
        map.take_borders(); // coasts
        map_layer countries = map.read_object("countries", parsed.at("objects").at("countries"));
        map_layer borders = map.take_borders();
        return {std::move(land), std::move(countries), std::move(borders)};
    } catch (const std::exception &error) { // also the parser's
        throw failure(path + " is not a TopoJSON file of countries: " + error.what());
    }
}

} // namespace draw

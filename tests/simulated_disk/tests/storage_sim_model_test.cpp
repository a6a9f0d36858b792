// Goal: after any operations and a cut at any event, the disk is one that the rules S1..S3 allow, and exactly the
// expected one where a cut leaves no choice (keep_all, drop_all).
// Method: random operations on a few small files, recorded here; for each event a plain reference works out, sector by
// sector, what may be there, and five cuts are held against it.
#include "storage_sim_tools.hpp"

#include <algorithm>
#include <map>
#include <random>

namespace {

using namespace sim_test;

constexpr uint64_t file_pages = 12;
constexpr uint64_t file_sectors = file_pages * 8;
constexpr uint64_t no_value = UINT64_MAX;

enum class kind {
    create,
    rename,
    remove,
    names,
    write,
    size,
    allocate,
    punch,
    flush,
    failed_flush,
    durable_write,
    failed_durable_write
};
struct step {
    kind what;
    int file = 0; // which file, as an identity that names move over
    uint64_t page = 0;
    uint64_t pages = 0;
    uint64_t tag = 0;
    std::string path;
    std::string target;
};

struct change {
    uint64_t value;
    bool by_write;
    bool forgotten = false;
};

// A history of one value: what is durable, and what was laid over it since.
struct history {
    uint64_t durable = 0;
    std::vector<change> since;

    uint64_t now() const { return since.empty() ? durable : since.back().value; }
    void flush() {
        for (size_t i = since.size(); i-- > 0;) {
            if (!since[i].forgotten) {
                durable = since[i].value;
                since.erase(since.begin(), since.begin() + static_cast<ptrdiff_t>(i) + 1);
                return;
            }
        }
    }
    void fail() {
        for (change &one : since) {
            one.forgotten = one.forgotten || one.by_write;
        }
    }
    // The write of the value becomes durable, and changes of size and space before it.
    void make_durable(uint64_t value) {
        for (size_t i = since.size(); i-- > 0;) {
            if (!since[i].by_write || since[i].value == value) {
                durable = since[i].value;
                since.erase(since.begin(), since.begin() + static_cast<ptrdiff_t>(i) + 1);
                return;
            }
        }
    }
    bool allows(uint64_t value) const {
        return value == durable ||
               std::any_of(since.begin(), since.end(), [&](const change &one) { return one.value == value; });
    }
    bool written() const {
        return std::any_of(since.begin(), since.end(), [](const change &one) { return one.by_write; });
    }
};

// The size of a file: operations that set it, and writes that let it grow.
struct size_history {
    struct operation {
        uint64_t value;
        bool grows;
        bool by_write = false;
        bool forgotten = false;
    };
    uint64_t durable = 0;
    std::vector<operation> since;

    static uint64_t apply(uint64_t size, const operation &one) {
        return one.grows ? std::max(size, one.value) : one.value;
    }
    uint64_t now() const {
        uint64_t size = durable;
        for (const operation &one : since) {
            size = apply(size, one);
        }
        return size;
    }
    void flush() {
        make_durable([](const operation &one) { return !one.forgotten; });
    }
    template <class Selects>
    void make_durable(Selects &&selects) {
        std::vector<operation> unflushed;
        for (const operation &one : since) {
            if (!selects(one)) {
                unflushed.push_back(one);
                continue;
            }
            durable = apply(durable, one);
            if (!one.grows) {
                unflushed.clear();
            }
        }
        since = unflushed;
    }
    void fail() {
        for (operation &one : since) {
            one.forgotten = one.forgotten || one.by_write;
        }
    }
    bool allows(uint64_t size) const {
        return size == durable ||
               std::any_of(since.begin(), since.end(), [&](const operation &one) { return one.value == size; });
    }
};

struct reference_file {
    size_history size; // in sectors
    history sectors[file_sectors];

    void apply(const step &one) {
        uint64_t first = one.page * 8;
        uint64_t end = first + one.pages * 8;
        switch (one.what) {
        case kind::write:
            for (uint64_t s = first; s < end; ++s) {
                sectors[s].since.push_back({one.tag + s - first, true});
            }
            size.since.push_back({end, true, true});
            break;
        case kind::allocate:
            size.since.push_back({end, true});
            break;
        case kind::punch:
            for (uint64_t s = first; s < end; ++s) {
                sectors[s].since.push_back({0, false});
            }
            break;
        case kind::size:
            for (uint64_t s = first; s < file_sectors; ++s) {
                sectors[s].since.push_back({0, false});
            }
            size.since.push_back({first, false});
            break;
        case kind::flush:
        case kind::failed_flush:
            for (history &sector : sectors) {
                one.what == kind::flush ? sector.flush() : sector.fail();
            }
            one.what == kind::flush ? size.flush() : size.fail();
            break;
        case kind::durable_write:
            for (uint64_t s = 0; s < file_sectors; ++s) {
                sectors[s].make_durable(s >= first && s < end ? one.tag + s - first : no_value);
            }
            size.make_durable([last = &size.since.back()](const size_history::operation &change) {
                return &change == last || !change.by_write;
            });
            break;
        case kind::failed_durable_write: // the write before it, of which a part was done
            for (uint64_t s = first; s < end; ++s) {
                sectors[s].since.back().forgotten = true;
            }
            size.since.back().forgotten = true;
            break;
        default:
            break;
        }
    }
};

using names = std::map<std::string, int>;
void apply_name(names &to, const step &one) {
    if (one.what != kind::create) {
        to.erase(one.path);
    }
    if (one.what != kind::remove) {
        to[one.what == kind::rename ? one.target : one.path] = one.file;
    }
}

struct reference {
    std::map<int, reference_file> files;
    std::vector<names> possible{{}}; // after each prefix of the unflushed changes of names

    void apply(const step &one) {
        if (one.what == kind::names) {
            possible = {possible.back()};
        } else if (one.what <= kind::remove) {
            possible.push_back(possible.back());
            apply_name(possible.back(), one);
            files[one.file];
        } else {
            files[one.file].apply(one);
        }
    }
};

// What is wrong with a file after a cut; empty if nothing is.
std::string wrong_content(const reference_file &rules, const std::vector<uint64_t> &tags, sim_cut cut) {
    uint64_t size = tags.size();
    bool exact = cut == sim_cut::keep_all || cut == sim_cut::drop_all;
    uint64_t exact_size = cut == sim_cut::keep_all ? rules.size.now() : rules.size.durable;
    if (exact ? size != exact_size : !rules.size.allows(size)) {
        return "size " + std::to_string(size);
    }
    for (uint64_t s = 0; s < size; ++s) {
        const history &sector = rules.sectors[s];
        bool good = cut == sim_cut::keep_all   ? tags[s] == sector.now()
                    : cut == sim_cut::drop_all ? tags[s] == sector.durable
                                               : sector.allows(tags[s]) || (cut == sim_cut::trash && sector.written());
        if (!good) {
            return "sector " + std::to_string(s) + " holds " + std::to_string(tags[s]);
        }
    }
    return {};
}

std::string wrong_as(const reference &rules, const names &expected, const disk_owner &after, sim_cut cut) {
    for (const char *path : {"/d/a", "/d/b", "/d/c"}) {
        auto found = expected.find(path);
        if (after.exists(path) != (found != expected.end())) {
            return std::string(path) + " is there or not";
        }
        if (found != expected.end()) {
            std::string wrong = wrong_content(rules.files.at(found->second), read_tags(after, path), cut);
            if (!wrong.empty()) {
                return path + (": " + wrong);
            }
        }
    }
    return {};
}

std::string wrong(const reference &rules, const disk_owner &after, sim_cut cut) {
    std::string reason;
    for (size_t i = 0; i < rules.possible.size(); ++i) {
        bool must = cut == sim_cut::keep_all ? i + 1 == rules.possible.size() : cut != sim_cut::drop_all || i == 0;
        if (must) {
            std::string why = wrong_as(rules, rules.possible[i], after, cut);
            if (why.empty()) {
                return {};
            }
            reason += why + "; ";
        }
    }
    return reason;
}

class script {
public:
    script(const disk_owner &on, uint64_t seed) : on_(on), random_(seed) {}
    ~script() {
        for (auto &[file, handle] : handles_) {
            on_.close(handle);
        }
    }
    script(const script &) = delete;
    script &operator=(const script &) = delete;

    // Does one random operation that makes exactly one event; a durable write counts as two operations.
    step next() {
        if (settling_) {
            settling_ = false;
            return durable_write_;
        }
        static const char *paths[] = {"/d/a", "/d/b", "/d/c"};
        std::string path = paths[random_() % 3];
        auto found = names_.find(path);
        if (found == names_.end()) {
            step one{kind::create, next_file_++, 0, 0, 0, path, {}};
            handles_[one.file] = on_.create(path.c_str());
            apply_name(names_, one);
            return one;
        }
        uint64_t lot = random_() % 40;
        if (lot < 3) {
            return change_name(lot, path, found->second, paths[random_() % 3]);
        }
        return change_content(lot, found->second);
    }

private:
    step change_name(uint64_t lot, const std::string &path, int file, std::string target) {
        const ty_storage *table = on_.table;
        if (lot == 0 || target == path) {
            EXPECT_EQ(on_.flush_names(), TY_OK);
            return {kind::names, 0, 0, 0, 0, {}, {}};
        }
        step one{lot == 1 ? kind::rename : kind::remove, file, 0, 0, 0, path, lot == 1 ? target : std::string()};
        ty_status status = lot == 1 ? table->rename(table->context, path.c_str(), target.c_str())
                                    : table->remove(table->context, path.c_str());
        EXPECT_EQ(status, TY_OK);
        apply_name(names_, one);
        return one;
    }

    step change_content(uint64_t lot, int file) {
        const ty_storage *table = on_.table;
        ty_file *handle = handles_.at(file);
        uint64_t page = random_() % file_pages;
        uint64_t pages = 1 + random_() % (file_pages - page);
        uint64_t size = 0;
        EXPECT_EQ(table->get_size(table->context, handle, &size), TY_OK);
        step one{kind::write, file, page, pages, next_tag_, {}, {}};
        if (lot < 8) {
            one.what = kind::flush;
            EXPECT_EQ(on_.flush(handle), TY_OK);
        } else if (lot < 10) {
            one.what = kind::failed_flush;
            sim_set_fault(on_.disk, {sim_op_flush, 0, false, TY_E_IO});
            EXPECT_EQ(on_.flush(handle), TY_E_IO);
        } else if (lot < 13) {
            one.what = kind::punch;
            EXPECT_EQ(table->punch(table->context, handle, page * block, pages * block), TY_OK);
        } else if (lot < 15) {
            one.what = kind::allocate;
            EXPECT_EQ(table->allocate(table->context, handle, page * block, pages * block), TY_OK);
        } else if (lot < 18 && size != page * block) {
            one.what = kind::size;
            EXPECT_EQ(table->set_size(table->context, handle, page * block), TY_OK);
        } else if (lot < 24) {
            EXPECT_EQ(write_tags(on_, handle, page, pages, next_tag_, true), TY_OK);
            next_tag_ += file_sectors;
            settling_ = true;
            durable_write_ = one;
            durable_write_.what = kind::durable_write;
        } else if (lot < 26) {
            uint64_t before = sim_event_count(on_.disk);
            sim_set_fault(on_.disk, {sim_op_write_durable, 0, false, TY_E_IO});
            EXPECT_EQ(write_tags(on_, handle, page, pages, next_tag_, true), TY_E_IO);
            one.pages = (sim_operation_count(on_.disk, sim_op_write_durable) * 7919) % (pages + 1);
            EXPECT_EQ(sim_event_count(on_.disk) - before, one.pages ? 2u : 0u);
            if (one.pages == 0) { // nothing was written: another operation in its place
                return change_content(39, file);
            }
            next_tag_ += file_sectors;
            settling_ = true;
            durable_write_ = one;
            durable_write_.what = kind::failed_durable_write;
        } else {
            EXPECT_EQ(write_tags(on_, handle, page, pages, next_tag_), TY_OK);
            next_tag_ += file_sectors;
        }
        return one;
    }

    const disk_owner &on_;
    std::mt19937_64 random_;
    names names_;
    std::map<int, ty_file *> handles_;
    int next_file_ = 1;
    bool settling_ = false;
    step durable_write_{};
    uint64_t next_tag_ = 1000;
};

void run(uint64_t seed) {
    disk_owner on;
    std::vector<step> steps;
    {
        script writer(on, seed);
        while (steps.size() < 400 || sim_event_count(on.disk) > steps.size()) {
            steps.push_back(writer.next());
        }
    }
    ASSERT_EQ(sim_event_count(on.disk), steps.size());
    reference rules;
    for (uint64_t event = 0; event <= steps.size(); ++event) {
        for (sim_cut cut : {sim_cut::keep_all, sim_cut::drop_all, sim_cut::random, sim_cut::prefix, sim_cut::trash}) {
            disk_owner after(sim_power_cut(on.disk, event, cut, seed + event));
            ASSERT_EQ(wrong(rules, after, cut), "")
                << "seed " << seed << ", event " << event << ", cut " << static_cast<int>(cut);
        }
        if (event < steps.size()) {
            rules.apply(steps[event]);
        }
    }
}

TEST(storage_sim_model, every_cut_is_one_that_the_rules_allow) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
        run(seed);
    }
}

} // namespace

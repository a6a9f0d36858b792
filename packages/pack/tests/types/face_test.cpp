// Goal: type descriptors that are deduced for C++ types say all there is: the pointer audit finds nothing to say of
// structures of them, and after a move and a fix they are the same. Method: a structure of each kind of member and
// container that taiyen/types.hpp knows, moved to another heap.
#include "moves.hpp"
#include "taiyen/types.hpp"

using namespace taiyen::test;

namespace {

template <class T>
using vector = std::vector<T, taiyen::allocator<T>>;
using string = std::basic_string<char, std::char_traits<char>, taiyen::allocator<char>>;
template <class T>
using list = std::list<T, taiyen::allocator<T>>;
template <class K, class V>
using map = std::map<K, V, std::less<K>, taiyen::allocator<std::pair<const K, V>>>;
template <class K, class V>
using unordered_map =
    std::unordered_map<K, V, std::hash<K>, std::equal_to<K>, taiyen::allocator<std::pair<const K, V>>>;

enum class colour : uint16_t { red, blue };

struct point {
    double x, y;
    const char *label;
};
struct node {
    node *next;
    char *text;
    int numbers[3];
    colour of;
    node *children[2];
    point points[2];
    std::array<node *, 2> others;
    void *anything;
    point *const *table;
};
class account {
public:
    account *next = nullptr;
    char *owner = nullptr;
    long balance() const { return balance_; }

private:
    long balance_ = 17;
};

struct everything {
    explicit everything(taiyen::heap_view heap)
        : names(taiyen::allocator<string>(heap)), numbers(taiyen::allocator<std::pair<const long, string>>(heap)),
          words(taiyen::allocator<std::pair<const long, point *>>(heap)), parts(taiyen::allocator<node *>(heap)),
          title("short", taiyen::allocator<char>(heap)), text(50, 'x', taiyen::allocator<char>(heap)),
          empty(taiyen::allocator<std::pair<const long, point *>>(heap)) {}
    vector<string> names;
    map<long, string> numbers;
    unordered_map<long, point *> words;
    list<node *> parts;
    string title;
    string text;
    unordered_map<long, point *> empty;
};

} // namespace

template <>
struct taiyen::describe<account> : taiyen::members<&account::next, &account::owner> {};
template <>
struct taiyen::describe<everything>
    : taiyen::members<&everything::names, &everything::numbers, &everything::words, &everything::parts,
                      &everything::title, &everything::text, &everything::empty> {};

TEST(descriptors_face, members_of_aggregates) {
    const ty_type *descriptor = taiyen::descriptor_of<node>();
    EXPECT_EQ(descriptor->size_bytes, sizeof(node));
    std::vector<size_t> offsets;
    for (size_t n = 0; n < descriptor->field_count; ++n)
        offsets.push_back(descriptor->fields[n].offset);
    EXPECT_EQ(offsets, (std::vector<size_t>{offsetof(node, next), offsetof(node, text), offsetof(node, children),
                                            offsetof(node, points), offsetof(node, others), offsetof(node, anything),
                                            offsetof(node, table)}));
    EXPECT_EQ(descriptor->fields[0].descriptor, descriptor);
    EXPECT_EQ(descriptor->fields[1].descriptor, nullptr);
    EXPECT_EQ(descriptor->fields[2].here.number, 2u);
    EXPECT_EQ(descriptor->fields[3].kind, TY_FIELD_NESTED);
    EXPECT_EQ(descriptor->fields[3].descriptor, taiyen::descriptor_of<point>());
    EXPECT_EQ(descriptor->fields[6].descriptor->fields[0].descriptor, taiyen::descriptor_of<point>());
    EXPECT_NE(std::string(descriptor->name).find("node"), std::string::npos);
    EXPECT_EQ(taiyen::descriptor_of<node>(), descriptor);
    descriptors_owner descriptors = new_descriptors();
    EXPECT_EQ(ty_types_add(descriptors.get(), descriptor), TY_OK) << ty_error_text();
    EXPECT_EQ(taiyen::descriptor_of<account>()->field_count, 2u);
    EXPECT_EQ(taiyen::descriptor_of<long>()->field_count, 0u);
}

// Members that cannot be made without a value, at any place, and arrays of them; and a long array.
TEST(descriptors_face, aggregates_of_containers) {
    struct person {
        uint32_t age;
        string name;
        string names[2];
        vector<node *> parts;
        map<long, string> numbers;
    };
    const ty_type *descriptor = taiyen::descriptor_of<person>();
    std::vector<const ty_type *> descriptors;
    for (size_t n = 0; n < descriptor->field_count; ++n)
        descriptors.push_back(descriptor->fields[n].descriptor);
    EXPECT_EQ(descriptors, (std::vector<const ty_type *>{
                               taiyen::descriptor_of<string>(), taiyen::descriptor_of<string>(),
                               taiyen::descriptor_of<vector<node *>>(), taiyen::descriptor_of<map<long, string>>()}));
    EXPECT_EQ(descriptor->fields[1].here.number, 2u);
    struct pair {
        string text;
        int number;
    };
    struct arrays {
        pair pairs[3];
        vector<string> texts[2];
        vector<vector<string>> nested;
        map<long, string> maps[2];
        pair last;
        node *nodes[4];
        char bytes[40];
        std::unique_ptr<string> owned[2];
    };
    descriptor = taiyen::descriptor_of<arrays>();
    std::vector<std::pair<size_t, size_t>> places;
    for (size_t n = 0; n < descriptor->field_count; ++n)
        places.emplace_back(descriptor->fields[n].offset, descriptor->fields[n].here.number);
    // 48 bytes each, 32, 32, 56, 48, 8, 1, 8
    EXPECT_EQ(places, (std::vector<std::pair<size_t, size_t>>{
                          {0, 3}, {144, 2}, {208, 1}, {240, 2}, {352, 1}, {400, 4}, {472, 2}}));
    struct long_text {
        char text[300];
        node *next;
    };
    ASSERT_EQ(taiyen::descriptor_of<long_text>()->field_count, 1u);
    EXPECT_EQ(taiyen::descriptor_of<long_text>()->fields[0].offset, offsetof(long_text, next));
}

// Bit-fields are none of a type descriptor's, const and volatile make no difference.
TEST(descriptors_face, members_that_are_odd) {
    struct odd {
        unsigned kind : 3;
        bool marked : 1;
        volatile long number;
        node *volatile first;
        node *const second;
        const volatile point third;
        point *volatile many[3];
        int : 5;
        node *last;
    };
    const ty_type *descriptor = taiyen::descriptor_of<odd>();
    std::vector<size_t> offsets;
    for (size_t n = 0; n < descriptor->field_count; ++n)
        offsets.push_back(descriptor->fields[n].offset);
    EXPECT_EQ(offsets, (std::vector<size_t>{offsetof(odd, first), offsetof(odd, second), offsetof(odd, third),
                                            offsetof(odd, many), offsetof(odd, last)}));
    EXPECT_EQ(descriptor->fields[0].descriptor, taiyen::descriptor_of<node>());
    EXPECT_EQ(descriptor->fields[2].descriptor, taiyen::descriptor_of<point>());
    EXPECT_EQ(descriptor->fields[3].here.number, 3u);
}

TEST(descriptors_face, containers_move) {
    heap_owner_ptr heap = new_heap();
    taiyen::heap_view view(heap.get());
    auto *all = ::new (ty_alloc(heap.get(), sizeof(everything))) everything(view);
    for (int n = 0; n < 100; ++n) {
        all->names.emplace_back(n % 40, 'n', taiyen::allocator<char>(view));
        all->numbers.emplace(n * 7 % 100, string(n % 30, 'v', taiyen::allocator<char>(view)));
        auto *one = make<point>(heap.get());
        one->x = n;
        one->label = make_text(heap.get(), "label");
        all->words.emplace(n, one);
        auto *part = make<node>(heap.get());
        part->text = make_text(heap.get(), "text");
        part->points[1].label = part->text;
        part->others[1] = part;
        all->parts.push_back(part);
    }
    descriptors_owner descriptors = new_descriptors();
    ASSERT_EQ(ty_root_set(heap.get(), "all", all), TY_OK);
    ASSERT_EQ(ty_types_root(descriptors.get(), "all", taiyen::descriptor_of<everything>(), nullptr), TY_OK)
        << ty_error_text();
    audit_result before = take_audit(heap.get(), descriptors.get());
    ASSERT_EQ(before.status, TY_OK) << before.text();
    EXPECT_EQ(before.mismatches.size(), 0u) << before.text();

    heap_owner_ptr other = new_heap();
    std::mt19937 dice(4);
    move_map moved = move_to(heap.get(), other.get(), dice);
    ASSERT_EQ(ty_fix_pointers(other.get(), descriptors.get(), move_map::moved, &moved, nullptr), TY_OK)
        << ty_error_text();
    heap.reset();
    audit_result after = take_audit(other.get(), descriptors.get());
    ASSERT_EQ(after.status, TY_OK) << after.text();
    all = static_cast<everything *>(ty_root(other.get(), "all"));
    ASSERT_EQ(all->names.size(), 100u);
    EXPECT_EQ(all->names[39], std::string(39, 'n').c_str());
    long next = 0;
    for (const auto &[key, value] : all->numbers)
        EXPECT_EQ(key, next++) << value;
    EXPECT_EQ(all->words.at(55)->x, 55);
    EXPECT_STREQ(all->words.at(99)->label, "label");
    for (const node *part : all->parts)
        EXPECT_EQ(part->others[1], part);
    all->empty.emplace(1, nullptr);
    EXPECT_EQ(all->title, "short");
    EXPECT_EQ(all->text.size(), 50u);
    // They are alive: they grow, and give back what they have.
    all->names.resize(500, string(taiyen::allocator<char>(taiyen::heap_view(other.get()))));
    all->words.clear();
    all->~everything();
}

TEST(descriptors_face, the_librarys_own) {
    static_assert(sizeof(taiyen::queue<node *>) == 128);
    const ty_type *descriptor = taiyen::descriptor_of<taiyen::queue<node *>>();
    ASSERT_EQ(descriptor->field_count, 4u); // two are words without addresses
    EXPECT_EQ(descriptor->fields[0].descriptor->size_bytes, 16u);
    EXPECT_EQ(descriptor->fields[0].descriptor->field_count, 2u);
    EXPECT_EQ(taiyen::descriptor_of<taiyen::var<node *>>()->fields[0].descriptor, taiyen::descriptor_of<node>());
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{1} << 30;
    options.concurrent = true;
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_heap_create(&options, &heap), TY_OK) << ty_error_text();
    using queue = taiyen::queue<node *>;
    auto *waiting = ::new (ty_alloc_aligned(heap, sizeof(queue), 64)) queue();
    ASSERT_EQ(ty_root_set(heap, "waiting", waiting), TY_OK);
    for (int n = 0; n < 20; ++n)
        waiting->push(make<node>(heap));
    descriptors_owner descriptors = new_descriptors();
    ASSERT_EQ(ty_types_root(descriptors.get(), "waiting", descriptor, nullptr), TY_OK) << ty_error_text();
    audit_result result = take_audit(heap, descriptors.get());
    EXPECT_EQ(result.status, TY_OK) << result.text();
    EXPECT_EQ(result.mismatches.size(), 0u) << result.text();
    EXPECT_EQ(result.figures.reached_blocks, 41u);
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}

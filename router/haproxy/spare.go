package haproxy

import (
	"fmt"
	"strings"
)

// Spare backends are for routes that come: HAProxy can be told of servers and of entries of tables while it runs, but not of backends. A route whose backend
// has the shape of a spare one is served by that at once, under the spare one's name, until the next reload.
const (
	// leastSpares are there of each usual shape, and besides these a share of all backends, since a reload takes longer among many.
	leastSpares = 32
	sparesShare = 50
	mostSpares  = 512
	// sparesAhead is by how much more there are next time than were used.
	sparesAhead = 4
)

// spare makes the spare backends of the next configuration: their names by shape, and their text.
func (r *running) spare(config *Config) (names map[string][]string, text string) {
	demand := map[string]int{}
	if r.served != nil {
		for shape, used := range r.served.demand() {
			demand[shape] = used * sparesAhead
		}
	}
	for shape, before := range r.demand { // what was needed once will be for a while
		demand[shape] = max(demand[shape], before/2)
	}
	for _, shape := range config.Shapes {
		demand[shape] = max(demand[shape], leastSpares, len(config.Backends)/sparesShare)
	}
	names, r.demand = map[string][]string{}, map[string]int{}
	var made strings.Builder
	count := 0
	for shape, wanted := range demand {
		if wanted = min(wanted, mostSpares); wanted < sparesAhead {
			continue
		}
		r.demand[shape] = wanted
		for range wanted {
			count++
			backend := Backend{Name: fmt.Sprintf("spare:%d", count), Shape: shape, Key: fmt.Sprintf("spare%d", count)}
			backend.write(&made)
			names[shape] = append(names[shape], backend.Name)
		}
	}
	return names, made.String()
}

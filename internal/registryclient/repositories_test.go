package registryclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestRepositoriesOfPrefixAreListed(t *testing.T) {
	pages := map[string][]string{"": {"team/a", "other/b", "team/BAD", "team"}, "1": {"team/c/d", "team2/e"}}
	host := registry(t, func(w http.ResponseWriter, r *http.Request) {
		page := r.URL.Query().Get("page")
		if page == "" {
			w.Header().Set("Link", fmt.Sprintf(`<%s?page=1>; rel="next"`, r.URL.Path))
		}
		_ = json.NewEncoder(w).Encode(map[string][]string{"repositories": pages[page]})
	})
	got, err := Client{}.Repositories(t.Context(), host, "team/")
	if want := []string{"team/a", "team/c/d"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestRepositoriesOfRegistryWithoutListAreAnError(t *testing.T) {
	host := registry(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	if _, err := (Client{}).Repositories(t.Context(), host, "team/"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v", err)
	}
}

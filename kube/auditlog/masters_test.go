package auditlog

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
)

// eventsOf returns a result whose events have the given ages in seconds.
func eventsOf(complete bool, ages ...int) Result {
	result := Result{Enabled: true, Complete: complete}
	for _, age := range ages {
		result.Events = append(result.Events, Event{Time: time.Unix(int64(1000-age), 0), Verb: fmt.Sprint(age)})
	}
	return result
}

func text(r Result) string {
	var words []string
	for _, event := range r.Events {
		words = append(words, event.Master+":"+event.Verb)
	}
	for _, m := range r.Missing {
		words = append(words, m.Master+" "+m.Reason)
	}
	return strings.Join(words, ", ")
}

// master serves a result, and records the users and queries of its requests.
func master(t *testing.T, status int, result Result) (address string, requests *[]string) {
	requests = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, fmt.Sprintf("%s %v %v %s", r.Header.Get("X-Remote-User"), r.Header["X-Remote-Group"], r.Header["X-Remote-Extra-Scopes"], r.URL.RawQuery))
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(result)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func TestSearchReadsLogsOfAllMasters(t *testing.T) {
	second, requests := master(t, http.StatusOK, eventsOf(true, 1, 3))
	third, _ := master(t, http.StatusForbidden, Result{})
	gone := httptest.NewServer(nil)
	gone.Close()
	urls := map[string]string{"first": "https://not.used", "second": second, "third": third, "fourth": gone.URL}
	m := Masters{Name: "first", URLs: func(context.Context, kubernetes.Interface) (map[string]string, error) { return maps.Clone(urls), nil }}
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "anna", Groups: []string{"admins"}, Extra: map[string][]string{"scopes": {"user:full"}}})
	own := func(context.Context) (Result, error) { return eventsOf(true, 2, 4), nil }

	result, err := m.searchAll(ctx, nil, http.DefaultTransport, url.Values{"verb": {"get"}}, own)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(result), "second:1, first:2, second:3, first:4, fourth "; !strings.HasPrefix(got, want) || !strings.Contains(got, "third 403") {
		t.Errorf("got %q, want %q", got, want)
	}
	if !result.Complete || !result.Enabled {
		t.Errorf("complete %t, enabled %t", result.Complete, result.Enabled)
	}
	if want := []string{"anna [admins] [user:full] local=true&verb=get"}; !slices.Equal(*requests, want) {
		t.Errorf("the second master gets %q, want %q", *requests, want)
	}

	local, err := m.searchAll(ctx, nil, http.DefaultTransport, url.Values{localParameter: {"true"}}, own)
	if err != nil || text(local) != ":2, :4" {
		t.Errorf("a search of one master's log returns %q, error %v", text(local), err)
	}
}

func TestOnlyMasterSearchesItsLog(t *testing.T) {
	m := Masters{Name: "first", URLs: func(context.Context, kubernetes.Interface) (map[string]string, error) { return nil, nil }}
	result, err := m.searchAll(t.Context(), nil, http.DefaultTransport, url.Values{}, func(context.Context) (Result, error) { return eventsOf(true, 1), nil })
	if err != nil || text(result) != ":1" || !result.Complete {
		t.Errorf("got %q, complete %t, error %v", text(result), result.Complete, err)
	}
}

func TestMergedResultIsIncompleteIfItDropsEvents(t *testing.T) {
	ages := make([]int, maxEvents)
	for _, c := range []struct {
		name              string
		answers           []answer
		events            int
		complete, enabled bool
	}{
		{"all", []answer{{"a", eventsOf(true, 1), nil}, {"b", eventsOf(true, 2), nil}}, 2, true, true},
		{"too many", []answer{{"a", eventsOf(true, ages...), nil}, {"b", eventsOf(true, 2), nil}}, maxEvents, false, true},
		{"one incomplete", []answer{{"a", eventsOf(true, 1), nil}, {"b", eventsOf(false, 2), nil}}, 2, false, true},
		{"one disabled", []answer{{"a", eventsOf(true, 1), nil}, {"b", Result{}, nil}}, 1, true, true},
		{"all disabled", []answer{{"a", Result{}, nil}, {"b", Result{}, nil}}, 0, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := merge(c.answers); len(got.Events) != c.events || got.Complete != c.complete || got.Enabled != c.enabled {
				t.Errorf("%d events, complete %t, enabled %t", len(got.Events), got.Complete, got.Enabled)
			}
		})
	}
}

// Package auditlog searches the audit logs of all masters, for a web console page that shows
// administrators what users have done. Each master searches its own log.
package auditlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// Path is the URL path of the search. Users need a role that lists this path.
const Path = "/slipway/audit"

// maxEvents is the maximum number of events in a response, and searchTimeout is the maximum
// duration of a search.
const (
	maxEvents     = 200
	searchTimeout = 20 * time.Second
)

// Event is a logged request. Resource contains the group and the subresource, such as
// deployments.apps/scale. It is empty for non-resource paths.
type Event struct {
	Time      time.Time `json:"time"`
	User      string    `json:"user"`
	Verb      string    `json:"verb"`
	Resource  string    `json:"resource,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	Path      string    `json:"path"`
	Address   string    `json:"address,omitempty"`
	Code      int32     `json:"code,omitempty"`
	// Master is the node of the master that logged the request, if there are several masters.
	Master string `json:"master,omitempty"`
}

// Result is the result of a search, with the newest event first. Complete means that the search has
// reached the beginning of the oldest log file of each master that is not in Missing.
type Result struct {
	Enabled  bool      `json:"enabled"`
	Events   []Event   `json:"events"`
	Complete bool      `json:"complete"`
	Missing  []Missing `json:"missing,omitempty"`
}

// query holds the criteria that events must match. Empty fields match everything.
type query struct {
	user, verb, resource, namespace, name string
	failed                                bool
}

// Feature serves searches at Path. A search covers the log in file and the logs of the other
// masters. If file is empty, this master's audit log is disabled.
func Feature(file string, masters Masters) apiserver.Feature {
	return apiserver.Feature{Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
		through, err := masters.transport()
		if err != nil {
			return apiserver.Hooks{}, fmt.Errorf("prepare searches of other masters' audit logs: %w", err)
		}
		view := apiserver.View(Path, searchTimeout, http.StatusInternalServerError, func(ctx context.Context, r *http.Request) (any, error) {
			return masters.searchAll(ctx, deps.Kube, through, r.URL.Query(), func(ctx context.Context) (Result, error) {
				return search(ctx, file, queryOf(r))
			})
		})
		return apiserver.Hooks{Handlers: []apiserver.Handler{view}}, nil
	}}
}

func queryOf(r *http.Request) query {
	values := r.URL.Query()
	failed, _ := strconv.ParseBool(values.Get("failed"))
	return query{
		user: values.Get("user"), verb: values.Get("verb"), resource: values.Get("resource"),
		namespace: values.Get("namespace"), name: values.Get("name"), failed: failed,
	}
}

// search reads the log backwards, and then its rotated files from the newest to the oldest. It
// stops when it has found maxEvents events or ctx is done. It does not read compressed files.
func search(ctx context.Context, path string, q query) (Result, error) {
	result := Result{Enabled: path != "", Events: []Event{}}
	if path == "" {
		return result, nil
	}
	for _, name := range append([]string{path}, rotated(path)...) {
		complete, err := q.read(ctx, name, &result)
		if err != nil {
			return result, fmt.Errorf("read audit log: %w", err)
		}
		if !complete {
			return result, nil
		}
	}
	result.Complete = true
	return result, nil
}

// rotated returns the rotated files of a log, newest first. The API server adds a timestamp to
// their names, such as audit-2026-11-29T10-00-00.000.log.
func rotated(path string) []string {
	extension := filepath.Ext(path)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil // without the directory, there is no log
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, strings.TrimSuffix(filepath.Base(path), extension)+"-") && strings.HasSuffix(name, extension) {
			names = append(names, filepath.Join(filepath.Dir(path), name))
		}
	}
	slices.Reverse(names) // ReadDir sorts by name, and therefore by time
	return names
}

// read adds the events of one file. complete means that it has read the whole file. A file that
// does not exist, or that has since been removed, is treated as empty.
func (q query) read(ctx context.Context, path string, result *Result) (complete bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	lines, err := newReverse(file)
	if err != nil {
		return false, err
	}
	for len(result.Events) < maxEvents && ctx.Err() == nil {
		line, err := lines.next()
		if err != nil {
			return false, err
		}
		if line == nil {
			return true, nil
		}
		if event, ok := q.match(line); ok {
			result.Events = append(result.Events, event)
		}
	}
	return false, nil
}

// match returns the event on a log line if it matches the query. A long-running request is logged
// on two lines. Only the last line matches.
func (q query) match(line []byte) (event Event, ok bool) {
	for _, word := range []string{q.user, q.verb, q.namespace, q.name} {
		if word != "" && !strings.Contains(string(line), word) {
			return event, false // skip most lines without decoding them
		}
	}
	var full auditv1.Event
	if err := json.Unmarshal(line, &full); err != nil || full.Stage != auditv1.StageResponseComplete && full.Stage != auditv1.StagePanic {
		return event, false
	}
	event = eventOf(&full)
	is := func(want, got string) bool { return want == "" || want == got }
	resource, _, _ := strings.Cut(event.Resource, "/")
	kind, _, _ := strings.Cut(resource, ".")
	return event, is(q.user, event.User) && is(q.verb, event.Verb) && is(q.namespace, event.Namespace) && is(q.name, event.Name) &&
		(is(q.resource, event.Resource) || is(q.resource, resource) || is(q.resource, kind)) && (!q.failed || event.Code >= http.StatusBadRequest)
}

func eventOf(full *auditv1.Event) Event {
	event := Event{Time: full.StageTimestamp.Time, User: full.User.Username, Verb: full.Verb, Path: full.RequestURI}
	if full.ImpersonatedUser != nil {
		event.User = full.ImpersonatedUser.Username + " (by " + full.User.Username + ")"
	}
	if len(full.SourceIPs) > 0 {
		event.Address = full.SourceIPs[0]
	}
	if full.ResponseStatus != nil {
		event.Code = full.ResponseStatus.Code
	}
	if ref := full.ObjectRef; ref != nil {
		event.Resource, event.Namespace, event.Name = ref.Resource, ref.Namespace, ref.Name
		if ref.APIGroup != "" {
			event.Resource += "." + ref.APIGroup
		}
		if ref.Subresource != "" {
			event.Resource += "/" + ref.Subresource
		}
	}
	return event
}

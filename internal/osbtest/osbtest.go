// Package osbtest provides a broker for tests. It was written only from the specification of the
// Open Service Broker API, version 2.17. Therefore, it is independent of the service catalog that
// it tests.
package osbtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// Broker provides databases. Its service "db" is synchronous, and its service "cloud" is
// asynchronous. Requests must authenticate as User with Password.
type Broker struct {
	mu sync.Mutex
	// Catalog contains the services.
	Catalog   []map[string]any
	instances map[string]*resource
	// orders counts the created instances for each ID, and deletions counts the deleted instances.
	orders, deletions map[string]int
	// Busy keeps asynchronous operations in progress while it is set. Fail makes asynchronous
	// operations fail.
	Busy, Fail bool
	// Refuse, if set, can respond to a request in place of the broker. Fault, if set, can replace
	// the response to a request that the broker has handled.
	Refuse, Fault func(w http.ResponseWriter, r *http.Request) bool
	users         []string
}

// resource is an instance or a binding.
type resource struct {
	body     map[string]any
	pending  string // ID of the operation in progress
	bindings map[string]*resource
}

// Credentials for the broker.
const (
	User     = "catalog"
	Password = "s3cret-of-broker"
)

// New returns a broker that offers the services "db" and "cloud".
func New() *Broker {
	return &Broker{instances: map[string]*resource{}, orders: map[string]int{}, deletions: map[string]int{}, Catalog: Services("db", "cloud")}
}

// Services returns catalog entries. The service "db" has the plans "small" and "large", and all
// other services have only the plan "small".
func Services(names ...string) (list []map[string]any) {
	for _, name := range names {
		plans := []map[string]any{{"id": "ID-" + name + "-small", "name": "small", "description": "A small one"}}
		if name == "db" {
			plans = append(plans, map[string]any{"id": "ID-db-large", "name": "large", "description": "A large one", "free": false})
		}
		list = append(list, map[string]any{
			"id": "ID-" + name, "name": name, "description": "A database", "bindable": true, "plan_updateable": true,
			"bindings_retrievable": name == "cloud", "instances_retrievable": name == "cloud", "tags": []string{"sql"}, "plans": plans,
			"metadata": map[string]any{"displayName": "Database " + name},
		})
	}
	return list
}

// Set calls change with the broker's lock held. change may modify the broker's fields.
func (b *Broker) Set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// Instance returns a copy of an instance's body, or nil.
func (b *Broker) Instance(id string) map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	if instance := b.instances[id]; instance != nil {
		return maps.Clone(instance.body)
	}
	return nil
}

// Count returns the numbers of instances that were created and deleted for an ID.
func (b *Broker) Count(id string) (orders, deletions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.orders[id], b.deletions[id]
}

// Originators returns the originators that the requests specified.
func (b *Broker) Originators() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.users)
}

// ServeHTTP implements http.Handler.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Read the body first, because net/http detects that a client has disconnected only after the
	// body has been read.
	content, err := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || r.Context().Err() != nil {
		return // the client disconnected before the broker could begin
	}
	r.Body = io.NopCloser(bytes.NewReader(content))
	if user, password, ok := r.BasicAuth(); !ok || user != User || password != Password {
		reply(w, http.StatusUnauthorized, map[string]any{"description": "wrong credentials"})
		return
	}
	if !strings.HasPrefix(r.Header.Get("X-Broker-API-Version"), "2.") {
		reply(w, http.StatusPreconditionFailed, map[string]any{"description": "no version"})
		return
	}
	if _, encoded, ok := strings.Cut(r.Header.Get("X-Broker-API-Originating-Identity"), "kubernetes "); ok {
		text, _ := base64.StdEncoding.DecodeString(encoded)
		var user struct{ Username string }
		_ = json.Unmarshal(text, &user)
		b.users = append(b.users, user.Username)
	}
	if b.Refuse != nil && b.Refuse(w, r) {
		return
	}
	recorder := httptest.NewRecorder()
	b.handle(recorder, r)
	if b.Fault != nil && b.Fault(w, r) {
		return
	}
	maps.Copy(w.Header(), recorder.Header())
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func (b *Broker) handle(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	body := map[string]any{}
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch {
	case r.URL.Path == "/v2/catalog":
		reply(w, http.StatusOK, map[string]any{"services": b.Catalog})
	case len(parts) == 4 && parts[3] == "last_operation":
		b.lastOperation(w, b.instances, parts[2])
	case len(parts) == 3:
		b.change(w, r, b.instances, parts[2], body, strings.Contains(serviceOf(r, body), "cloud"), map[string]any{"dashboard_url": "http://dashboard.example.com/" + parts[2]})
	case b.instances[parts[2]] == nil:
		reply(w, http.StatusGone, map[string]any{})
	case len(parts) == 6:
		b.lastOperation(w, b.instances[parts[2]].bindings, parts[4])
	default:
		credentials := map[string]any{"username": "admin", "password": "pw-" + parts[4], "port": 5432, "uri": "sql://db/" + parts[2]}
		b.change(w, r, b.instances[parts[2]].bindings, parts[4], body, strings.Contains(serviceOf(r, body), "cloud"), map[string]any{"credentials": credentials})
	}
}

func serviceOf(r *http.Request, body map[string]any) string {
	if id, ok := body["service_id"].(string); ok {
		return id
	}
	return r.URL.Query().Get("service_id")
}

// change handles the requests for an instance or binding.
func (b *Broker) change(w http.ResponseWriter, r *http.Request, in map[string]*resource, id string, body map[string]any, async bool, result map[string]any) {
	existing := in[id]
	if async && r.URL.Query().Get("accepts_incomplete") != "true" && r.Method != http.MethodGet {
		reply(w, http.StatusUnprocessableEntity, map[string]any{"error": "AsyncRequired"})
		return
	}
	if version, ok := body["maintenance_info"].(map[string]any); ok && version["version"] != b.version(body, existing) {
		reply(w, http.StatusUnprocessableEntity, map[string]any{"error": "MaintenanceInfoConflict"})
		return
	}
	switch {
	case (r.Method == http.MethodPatch && existing != nil || r.Method == http.MethodPut && existing == nil) && !b.offers(body["service_id"], planOf(body, existing)):
		reply(w, http.StatusBadRequest, map[string]any{"description": "the service or the plan does not exist"})
		return
	case r.Method == http.MethodPut && existing == nil:
		in[id] = &resource{body: body, bindings: map[string]*resource{}}
		b.orders[id]++
	case r.Method == http.MethodPut && existing.pending == "delete":
		reply(w, http.StatusUnprocessableEntity, map[string]any{"error": "ConcurrencyError"})
		return
	case r.Method == http.MethodPut:
		if !sameOrder(existing.body, body) {
			reply(w, http.StatusConflict, map[string]any{"description": "the ID exists with other attributes"})
			return
		}
		if existing.pending == "" {
			reply(w, http.StatusOK, result)
			return
		}
	case existing == nil && r.Method == http.MethodDelete:
		reply(w, http.StatusGone, map[string]any{})
		return
	case existing == nil, r.Method == http.MethodGet && existing.pending == "create":
		reply(w, http.StatusNotFound, map[string]any{})
		return
	case r.Method == http.MethodGet:
		reply(w, http.StatusOK, result)
		return
	case r.Method == http.MethodPatch:
		for _, key := range []string{"plan_id", "parameters", "maintenance_info"} {
			if value, ok := body[key]; ok {
				existing.body[key] = value
			}
		}
	case r.Method == http.MethodDelete && !async:
		delete(in, id)
		b.deletions[id]++
		reply(w, http.StatusOK, map[string]any{})
		return
	}
	if !async && r.Method == http.MethodPatch {
		reply(w, http.StatusOK, result)
		return
	}
	if !async {
		reply(w, http.StatusCreated, result)
		return
	}
	in[id].pending = map[string]string{http.MethodPut: "create", http.MethodPatch: "update", http.MethodDelete: "delete"}[r.Method]
	reply(w, http.StatusAccepted, map[string]any{"operation": in[id].pending})
}

// planOf returns the ID of a request's plan, or of the instance's plan if the request does not
// specify a plan.
func planOf(body map[string]any, existing *resource) any {
	if plan, ok := body["plan_id"]; ok || existing == nil {
		return plan
	}
	return existing.body["plan_id"]
}

// offers reports whether the catalog has a service with the given plan.
func (b *Broker) offers(serviceID, planID any) bool {
	return slices.ContainsFunc(b.Catalog, func(service map[string]any) bool {
		plans, _ := service["plans"].([]map[string]any)
		return service["id"] == serviceID && slices.ContainsFunc(plans, func(plan map[string]any) bool { return plan["id"] == planID })
	})
}

// version returns the version of the request's plan, or of the instance's plan.
func (b *Broker) version(body map[string]any, existing *resource) any {
	plan := planOf(body, existing)
	for _, service := range b.Catalog {
		plans, _ := service["plans"].([]map[string]any)
		for _, entry := range plans {
			if info, ok := entry["maintenance_info"].(map[string]any); ok && entry["id"] == plan {
				return info["version"]
			}
		}
	}
	return nil
}

// SetVersion sets the version of the first service's first plan.
func (b *Broker) SetVersion(version string) {
	b.Set(func() {
		plans, _ := b.Catalog[0]["plans"].([]map[string]any)
		plans[0]["maintenance_info"] = map[string]any{"version": version}
	})
}

// sameOrder reports whether two requests have the same service, plan and parameters.
func sameOrder(a, b map[string]any) bool {
	order := func(body map[string]any) string {
		text, _ := json.Marshal([]any{body["service_id"], body["plan_id"], body["parameters"]})
		return string(text)
	}
	return order(a) == order(b)
}

func (b *Broker) lastOperation(w http.ResponseWriter, in map[string]*resource, id string) {
	existing := in[id]
	switch {
	case existing == nil:
		reply(w, http.StatusGone, map[string]any{})
	case b.Busy && existing.pending != "":
		reply(w, http.StatusOK, map[string]any{"state": "in progress", "description": "half done"})
	case b.Fail && existing.pending != "":
		existing.pending = ""
		reply(w, http.StatusOK, map[string]any{"state": "failed", "description": "no disk"})
	case existing.pending == "delete":
		delete(in, id)
		b.deletions[id]++
		reply(w, http.StatusGone, map[string]any{})
	default:
		existing.pending = ""
		reply(w, http.StatusOK, map[string]any{"state": "succeeded"})
	}
}

package bigiptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// rejection is the response to a bad request.
type rejection struct {
	status  int
	message string
}

func refuse(status int, format string, args ...any) *rejection {
	return &rejection{status, fmt.Sprintf(format, args...)}
}

// ServeHTTP implements http.Handler. It serves the REST API.
func (a *Appliance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	body, err := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	var result any
	var refused *rejection
	switch {
	case a.down:
		refused = refuse(http.StatusServiceUnavailable, "There is an active asynchronous task executing.")
	case err != nil:
		refused = refuse(http.StatusBadRequest, "%v", err)
	case user != User || password != Password:
		refused = refuse(http.StatusUnauthorized, "Authorization failed: no user authentication header or token detected.")
	default:
		result, refused = a.handle(r, body)
	}
	if refused != nil {
		w.WriteHeader(refused.status)
		result = map[string]any{"code": refused.status, "message": refused.message, "errorStack": []string{}}
	}
	_ = json.NewEncoder(w).Encode(result) // the client might have disconnected
}

func (a *Appliance) handle(r *http.Request, body []byte) (any, *rejection) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/mgmt/shared/file-transfer/uploads/"); ok {
		if want := fmt.Sprintf("0-%d/%d", len(body)-1, len(body)); r.Header.Get("Content-Range") != want {
			return nil, refuse(http.StatusBadRequest, "Content-Range is not %s", want)
		}
		a.files["/var/config/rest/downloads/"+name] = body
		return map[string]any{"remainingByteCount": 0}, nil
	}
	path := strings.TrimPrefix(r.URL.Path, "/mgmt/tm/")
	content := map[string]any{}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &content); err != nil {
			return nil, refuse(http.StatusBadRequest, "Found invalid JSON body in the request: %v", err)
		}
	}
	if r.Method != http.MethodGet {
		a.requests = append(a.requests, r.Method+" "+path)
	}
	if path == "util/unix-rm" {
		file, _ := content["utilCmdArgs"].(string)
		delete(a.files, file)
		return content, nil
	}
	k, fullPath, ok := a.find(path)
	if !ok {
		return nil, refuse(http.StatusNotFound, "Public URI path not registered: %s", r.URL.Path)
	}
	expand := r.URL.Query().Get("expandSubcollections") == "true"
	if fullPath == "" {
		return a.handleCollection(r.Method, k, path, content, expand)
	}
	o := a.objects[path]
	if o == nil {
		return nil, refuse(http.StatusNotFound, "01020036:3: The requested %s (%s) was not found.", k.path, fullPath)
	}
	switch r.Method {
	case http.MethodGet:
		return a.view(k, o, expand), nil
	case http.MethodDelete:
		return nil, a.delete(o)
	case http.MethodPatch:
		return a.view(k, o, false), a.change(k, o, content)
	}
	return nil, refuse(http.StatusMethodNotAllowed, "%s is not supported", r.Method)
}

func (a *Appliance) handleCollection(method string, k kind, path string, content map[string]any, expand bool) (any, *rejection) {
	switch method {
	case http.MethodGet:
		items := []any{}
		for _, o := range a.list(path) {
			items = append(items, a.view(k, o, expand))
		}
		return map[string]any{"kind": "collectionstate", "items": items}, nil
	case http.MethodPost:
		o, refused := a.create(k, path, content)
		if refused != nil {
			return nil, refused
		}
		return a.view(k, o, false), nil
	}
	return nil, refuse(http.StatusMethodNotAllowed, "%s is not supported", method)
}

// view returns an object in the form that the API returns.
func (a *Appliance) view(k kind, o *object, expand bool) map[string]any {
	shown := map[string]any{
		"fullPath": o.fullPath, "name": o.fullPath[strings.LastIndex(o.fullPath, "/")+1:], "generation": 1,
		"selfLink": "https://localhost/mgmt/tm/" + o.path() + "?ver=" + a.options.Version,
	}
	for name, value := range o.attributes {
		shown[name] = value
	}
	// The appliance returns "min 1 of A B" as "min 1 of { A B }".
	if monitor, ok := shown["monitor"].(string); ok && strings.HasPrefix(monitor, "min ") {
		count, monitors, _ := strings.Cut(strings.TrimPrefix(monitor, "min "), " of ")
		shown["monitor"] = "min " + count + " of { " + monitors + " }"
	}
	for part := range strings.FieldsSeq(k.parts) {
		reference := map[string]any{"link": "https://localhost/mgmt/tm/" + o.path() + "/" + part, "isSubcollection": true}
		if expand {
			items := []any{}
			below, _, _ := a.find(o.path() + "/" + part)
			for _, child := range a.list(o.path() + "/" + part) {
				items = append(items, a.view(below, child, false))
			}
			reference["items"] = items
		}
		shown[part+"Reference"] = reference
	}
	return shown
}

// create creates an object with its parts.
func (a *Appliance) create(k kind, collection string, content map[string]any) (*object, *rejection) {
	name, _ := content["name"].(string)
	partition, _ := content["partition"].(string)
	fullPath := name
	if !k.plain && !strings.HasPrefix(name, "/") {
		fullPath = "/" + strings.Trim(partition, "/") + "/" + name
	}
	delete(content, "name")
	delete(content, "partition")
	if name == "" {
		return nil, refuse(http.StatusBadRequest, "one or more properties must be specified")
	}
	if a.objects[collection+"/"+escape(fullPath)] != nil {
		return nil, refuse(http.StatusConflict, "01020066:3: The requested %s (%s) already exists in partition.", k.path, fullPath)
	}
	if folder := fullPath[:strings.LastIndex(fullPath, "/")+1]; len(folder) > 1 && a.objects["sys/folder/"+escape(strings.TrimSuffix(folder, "/"))] == nil {
		return nil, refuse(http.StatusNotFound, "01020036:3: The requested folder (%s) was not found.", folder)
	}
	o := a.put(collection, fullPath, nil)
	if refused := a.change(k, o, content); refused != nil {
		a.remove(o.path())
		return nil, refused
	}
	return o, nil
}

// change sets an object's attributes and replaces its parts. If the appliance rejects the change,
// nothing changes.
func (a *Appliance) change(k kind, o *object, content map[string]any) *rejection {
	attributeNames := strings.Fields(k.attributes)
	before := a.snapshot()
	for name, value := range content {
		switch {
		case slices.Contains(attributeNames, name):
			o.attributes[name] = value
		case slices.Contains(strings.Fields(k.parts), name):
			if refused := a.replace(o, name, value); refused != nil {
				a.objects = before
				return refused
			}
		default:
			a.objects = before
			return refuse(http.StatusBadRequest, "%q unknown property", name)
		}
	}
	if refused := a.check(o); refused != nil {
		a.objects = before
		return refused
	}
	a.announce(o)
	return nil
}

// snapshot returns a copy of the objects.
func (a *Appliance) snapshot() map[string]*object {
	copied := map[string]*object{}
	for path, o := range a.objects {
		attributes := map[string]any{}
		for name, value := range o.attributes {
			attributes[name] = value
		}
		copied[path] = &object{o.collection, o.fullPath, attributes}
	}
	return copied
}

// replace replaces one of an object's parts.
func (a *Appliance) replace(o *object, part string, value any) *rejection {
	collection := o.path() + "/" + part
	for _, child := range a.list(collection) {
		a.remove(child.path())
	}
	items, _ := value.([]any)
	below, _, _ := a.find(collection)
	for _, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			return refuse(http.StatusBadRequest, "%s must be a list of objects", part)
		}
		if _, refused := a.create(below, collection, content); refused != nil {
			return refused
		}
	}
	return nil
}

// delete deletes an object that is not in use by another object.
func (a *Appliance) delete(o *object) *rejection {
	if user := a.userOf(o); user != "" {
		return refuse(http.StatusBadRequest, "01070265:3: The object (%s) cannot be deleted because it is in use by %s.", o.fullPath, user)
	}
	a.remove(o.path())
	a.announce(o)
	return nil
}

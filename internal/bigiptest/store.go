package bigiptest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// object is an object in the appliance's configuration, such as a pool.
type object struct {
	collection, fullPath string
	attributes           map[string]any
}

// escape returns a full path in the form that is used in URLs.
func escape(fullPath string) string { return strings.ReplaceAll(fullPath, "/", "~") }

func (a *Appliance) put(collection, fullPath string, attributes map[string]any) *object {
	o := &object{collection, fullPath, maps.Clone(attributes)}
	if o.attributes == nil {
		o.attributes = map[string]any{}
	}
	a.objects[collection+"/"+escape(fullPath)] = o
	return o
}

// remove removes an object and everything below it.
func (a *Appliance) remove(path string) {
	for other := range a.objects {
		if other == path || strings.HasPrefix(other, path+"/") {
			delete(a.objects, other)
		}
	}
}

// list returns a collection's objects, sorted by full path.
func (a *Appliance) list(collection string) (objects []*object) {
	for _, o := range a.objects {
		if o.collection == collection {
			objects = append(objects, o)
		}
	}
	slices.SortFunc(objects, func(x, y *object) int { return cmp.Compare(x.fullPath, y.fullPath) })
	return objects
}

// text returns a string attribute, or "".
func (o *object) text(name string) string {
	text, _ := o.attributes[name].(string)
	return text
}

// on reports whether an attribute is true.
func (o *object) on(name string) bool {
	on, _ := o.attributes[name].(bool)
	return on
}

// texts returns an attribute that is a list of strings.
func (o *object) texts(name string) (texts []string) {
	list, _ := o.attributes[name].([]any)
	for _, item := range list {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// path returns the path of an object.
func (o *object) path() string { return o.collection + "/" + escape(o.fullPath) }

// kind describes one of the appliance's collections. "*" in a path stands for an object.
type kind struct {
	path string
	// attributes contains the attributes that a request can set. parts contains the attributes that
	// are separate collections.
	attributes, parts string
	// plain is set if objects have only a name, and are not in a folder.
	plain bool
}

// kinds returns the appliance's collections.
func kinds() []kind {
	const condition = "request httpHost host httpUri path pathSegment index equals endsWith not caseInsensitive values"
	const action = "request forward select pool httpReply redirect location serverSsl enable disable"
	return []kind{
		{path: "ltm/pool", attributes: "loadBalancingMode monitor", parts: "members"},
		{path: "ltm/pool/*/members", attributes: "address ratio"},
		{path: "ltm/node", attributes: "address"},
		{path: "ltm/policy", attributes: "controls requires strategy legacy", parts: "rules"},
		{path: "ltm/policy/*/rules", attributes: "ordinal", parts: "conditions actions", plain: true},
		{path: "ltm/policy/*/rules/*/conditions", attributes: condition, plain: true},
		{path: "ltm/policy/*/rules/*/actions", attributes: action, plain: true},
		{path: "ltm/virtual", attributes: "rules destination", parts: "policies profiles"},
		{path: "ltm/virtual/*/policies"},
		{path: "ltm/virtual/*/profiles", attributes: "context"},
		{path: "ltm/data-group/internal", attributes: "type records"},
		{path: "ltm/rule", attributes: "apiAnonymous"},
		{path: "ltm/profile/client-ssl", attributes: "cert key chain serverName defaultsFrom sniDefault"},
		{path: "ltm/profile/server-ssl", attributes: "caFile peerCertMode authenticateName serverName defaultsFrom sniDefault"},
		{path: "sys/file/ssl-cert", attributes: "sourcePath"},
		{path: "sys/file/ssl-key", attributes: "sourcePath"},
		{path: "sys/folder"},
		{path: "net/tunnels/vxlan", attributes: "floodingType port"},
		{path: "net/tunnels/tunnel", attributes: "localAddress key profile"},
		{path: "net/self", attributes: "address vlan allowService trafficGroup"},
		{path: "net/fdb/tunnel", parts: "records"},
		{path: "net/fdb/tunnel/*/records", attributes: "endpoint", plain: true},
	}
}

// find returns the collection at a path, and the object's full path if the path identifies an
// object. All objects in the path must exist, except for the last object.
func (a *Appliance) find(path string) (collection kind, fullPath string, ok bool) {
	for _, k := range kinds() {
		pattern, parts := strings.Split(k.path, "/"), strings.Split(path, "/")
		if len(parts) != len(pattern) && len(parts) != len(pattern)+1 {
			continue
		}
		matches := true
		for i, part := range pattern {
			matches = matches && (part == "*" || part == parts[i])
		}
		if !matches {
			continue
		}
		for i, part := range pattern {
			if part == "*" && a.objects[strings.Join(parts[:i+1], "/")] == nil {
				return k, "", false
			}
		}
		if len(parts) > len(pattern) {
			fullPath = strings.ReplaceAll(parts[len(pattern)], "~", "/")
		}
		return k, fullPath, true
	}
	return kind{}, "", false
}

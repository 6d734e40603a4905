// Package manifest converts objects to current API versions if the cluster no longer serves their
// versions. It converts OpenShift's kinds without a group, as in OpenShift 3 manifests
// (`apiVersion: v1, kind: Route`), and versions that Kubernetes has removed. If a default differs
// between versions, the package sets the old default explicitly.
//
// Sources: Kubernetes' deprecated API migration guide, the defaults of the removed versions, and
// OpenShift Container Platform 3.11, whose manifests use all of these versions.
package manifest

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Change describes how an object was converted.
type Change struct {
	// Kind and Name identify the object. Name can be empty.
	Kind, Name string
	// From and To are API versions, such as "extensions/v1beta1". From is empty if the object had
	// no version.
	From, To string
	// Note is a warning for the object's author, or empty.
	Note string
}

// String returns the change as a warning for the object's author.
func (c Change) String() string {
	text := fmt.Sprintf("%s %q: apiVersion %s is no longer served, %s is used", c.Kind, c.Name, c.From, c.To)
	if c.From == "" {
		text = fmt.Sprintf("%s %q: it has no apiVersion, %s is used", c.Kind, c.Name, c.To)
	}
	if c.Note != "" {
		text += "; " + c.Note
	}
	return text
}

// Convert converts the objects in JSON or YAML documents from old versions to current versions, and
// returns the changes. It replaces a list that contains a converted object with separate documents,
// because clients reject a list whose objects omit fields with defaults. If no object needs
// conversion, Convert returns the text unchanged. It also does so if it cannot parse the text,
// because the caller reports a clearer error.
func Convert(text []byte) ([]byte, []Change) {
	var (
		changes []Change
		written [][]byte
	)
	err := eachDocument(text, func(document []byte, object map[string]any) error {
		changed := convert(object)
		if len(changed) == 0 {
			written = append(written, document)
			return nil
		}
		changes = append(changes, changed...)
		for _, item := range apart(object) {
			content, err := yaml.Marshal(item)
			if err != nil {
				return err
			}
			written = append(written, content)
		}
		return nil
	})
	if err != nil || len(changes) == 0 {
		return text, nil
	}
	return bytes.Join(written, []byte("\n---\n")), changes
}

// decode parses a document. It preserves the precision of integers of up to 64 bits.
func decode(document []byte) (object map[string]any, err error) {
	encoded, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(encoded, &object)
	return object, err
}

// apart returns the items of a list. If object is not a list, it returns object itself.
func apart(object map[string]any) []map[string]any {
	if isList(object) {
		return items(object, "items")
	}
	return []map[string]any{object}
}

// convert converts an object, or the items of a list, in place.
func convert(object map[string]any) (changes []Change) {
	changes = asList(object)
	version, kind := text(object, "apiVersion"), text(object, "kind")
	if isList(object) {
		for _, item := range items(object, "items") {
			changes = append(changes, convert(item)...)
		}
		return changes
	}
	if target, ok := dig(object, "spec", "scaleTargetRef"); ok && kind == "HorizontalPodAutoscaler" {
		to, _ := current(text(target, "apiVersion"), text(target, "kind"))
		if text(target, "apiVersion") == "" {
			to = scaled[text(target, "kind")]
		}
		if to != "" {
			changes = append(changes, Change{Kind: "scaleTargetRef of " + kind, Name: text(object, "metadata", "name"), From: text(target, "apiVersion"), To: to})
			target["apiVersion"] = to
		}
	}
	to, adapt := current(version, kind)
	if to == "" {
		return changes
	}
	change := Change{Kind: kind, Name: text(object, "metadata", "name"), From: version, To: to}
	object["apiVersion"] = to
	if adapt != nil {
		change.Note = adapt(object, version)
	}
	return append(changes, change)
}

// asList converts a list of an OpenShift kind, such as an ImageStreamList, to a List, in place. It
// also sets the version and kind of items that do not specify them.
func asList(object map[string]any) []Change {
	kind, isList := strings.CutSuffix(text(object, "kind"), "List")
	version := text(object, "apiVersion")
	to, _ := current(version, kind)
	if !isList || to == "" || version != "v1" {
		return nil
	}
	change := Change{Kind: kind + "List", Name: text(object, "metadata", "name"), From: version, To: to}
	object["kind"] = "List"
	for _, item := range items(object, "items") {
		setDefault(item, "apiVersion", version)
		setDefault(item, "kind", kind)
	}
	return []Change{change}
}

// dig returns the map at a path of fields. If there is no map, it returns false.
func dig(object map[string]any, names ...string) (map[string]any, bool) {
	for _, name := range names {
		next, ok := object[name].(map[string]any)
		if !ok {
			return nil, false
		}
		object = next
	}
	return object, true
}

// text returns the string at a path of fields, or "".
func text(object map[string]any, names ...string) string {
	within, ok := dig(object, names[:len(names)-1]...)
	if !ok {
		return ""
	}
	match, _ := within[names[len(names)-1]].(string)
	return match
}

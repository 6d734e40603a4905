package bootstrap

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

//go:embed samples
var samplesFS embed.FS

// sample is a language for which the project openshift has an image stream of builder images and a
// quickstart template.
type sample struct {
	// Name is the name of the stream, of the language in `oc new-app`, and of the directory in
	// examples/.
	Name string
	// Language is the display name. Icon is an icon class of OpenShift's console.
	Language, Icon string
	// Tag is the version that examples/builders builds.
	Tag string
	// Persistent is set for a quickstart that stores its data on a volume.
	Persistent bool
}

// samples returns the initial image streams and templates of the project openshift. Each is created
// only if it does not exist. Later changes by an administrator stay.
func samples() ([]*unstructured.Unstructured, error) {
	python := sample{Name: "python", Language: "Python", Icon: "python", Tag: "3.11"}
	persistent := python
	persistent.Persistent = true
	languages := []sample{
		python,
		{Name: "nodejs", Language: "Node.js", Icon: "nodejs", Tag: "18"},
		{Name: "golang", Language: "Go", Icon: "go-gopher", Tag: "1.19"},
	}
	texts, err := template.New("").Delims("[[", "]]").ParseFS(samplesFS, "samples/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("load samples: %w", err)
	}
	var all []*unstructured.Unstructured
	add := func(file string, values sample) error {
		var text bytes.Buffer
		if err := texts.ExecuteTemplate(&text, file, values); err != nil {
			return fmt.Errorf("fill in sample %q: %w", file, err)
		}
		objects, err := decode(text.Bytes())
		if err != nil {
			return fmt.Errorf("decode sample %q: %w", file, err)
		}
		all = append(all, objects...)
		return nil
	}
	for _, language := range languages {
		if err := add("stream.yaml", language); err != nil {
			return nil, err
		}
	}
	for _, quickstart := range append(languages, persistent) {
		if err := add("template.yaml", quickstart); err != nil {
			return nil, err
		}
	}
	return all, add("httpd.yaml", sample{})
}

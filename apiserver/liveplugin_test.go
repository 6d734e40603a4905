package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// rejecter is a plugin that rejects every request with the text of its configuration. It requires
// an authorizer.
type rejecter struct {
	*admission.Handler
	text       string
	authorizer authorizer.Authorizer
}

func newRefuser(config io.Reader) (admission.Interface, error) {
	text := "nothing"
	if config != nil {
		content, err := io.ReadAll(config)
		if err != nil || string(content) == "bad" {
			return nil, errors.Join(err, errors.New("bad configuration"))
		}
		text = string(content)
	}
	return &rejecter{Handler: admission.NewHandler(admission.Create), text: text}, nil
}

func (r *rejecter) SetAuthorizer(a authorizer.Authorizer) { r.authorizer = a }

func (r *rejecter) ValidateInitialization() error {
	if r.authorizer == nil {
		return errors.New("no authorizer")
	}
	return nil
}

func (r *rejecter) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return errors.New(r.text)
}

func TestPrepareReplacesLivePlugins(t *testing.T) {
	features := []Feature{{Admission: []Admission{
		{Name: "on", New: newRefuser, Live: true}, {Name: "optional", New: newRefuser, Live: true, Optional: true}, {Name: "other", New: newRefuser},
	}}}
	live := MakeLive(features, map[string]PluginConfig{"on": {Content: []byte("first")}})
	if got := strings.Join(live.Names(), " "); got != "on optional" {
		t.Fatalf("live plugins: %s", got)
	}
	var chain []admission.ValidationInterface
	for _, plugin := range features[0].Admission[:2] {
		plugin, err := plugin.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		plugin.(*livePlugin).SetAuthorizer(authorizer.AuthorizerFunc(nil))
		if err := plugin.(*livePlugin).ValidateInitialization(); err != nil {
			t.Fatal(err)
		}
		chain = append(chain, plugin.(admission.ValidationInterface))
	}
	results := func() string {
		var all []string
		for _, plugin := range chain {
			attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, "", admission.Create, nil, false, nil)
			all = append(all, fmt.Sprint(plugin.Handles(admission.Create), plugin.Validate(t.Context(), attributes, nil)))
		}
		return strings.Join(all, ", ")
	}
	if got := results(); got != "true first, false <nil>" {
		t.Errorf("at the start: %s", got)
	}
	for _, step := range []struct {
		configs map[string]PluginConfig
		fails   bool
		want    string
	}{
		{map[string]PluginConfig{"on": {Content: []byte("second")}, "optional": {}}, false, "true second, true nothing"},
		{map[string]PluginConfig{"on": {Content: []byte("third")}, "optional": {Content: []byte("bad")}}, true, "true second, true nothing"},
		{map[string]PluginConfig{"on": {Disabled: true}}, false, "false <nil>, false <nil>"},
		{nil, false, "true nothing, false <nil>"},
	} {
		apply, err := live.Prepare(step.configs)
		if (err != nil) != step.fails {
			t.Fatalf("%v: %v", step.configs, err)
		}
		if err == nil {
			apply()
		}
		if got := results(); got != step.want {
			t.Errorf("%v: %s, want %s", step.configs, got, step.want)
		}
	}
}

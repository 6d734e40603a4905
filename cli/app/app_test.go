package app

import (
	"slices"
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	templatev1 "github.com/openshift/api/template/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/scheme"
)

func TestSearchRejectsArgumentsOfApplications(t *testing.T) {
	o := &newApp{search: true}
	o.groups = []string{"c+d"}
	if names, err := o.terms([]string{"php", "a+b"}); err != nil || !slices.Equal(names, []string{"php", "a", "b", "c", "d"}) {
		t.Errorf("terms %q, %v", names, err)
	}
	const url = "https://example.com/app.git"
	for want, tt := range map[string]struct {
		newApp
		args []string
	}{
		"remove \"" + url + `"`: {newApp{search: true}, []string{"php~" + url}},
		`can't be used with source code or files: remove "` + url + `"`: {newApp{search: true}, []string{url}},
		"can't be used with source code and files":                      {newApp{search: true, code: []string{url}}, []string{"php"}},
		"can't be used with --env":                                      {newApp{search: true}, []string{"php", "A=b"}},
		"--build-env or --param":                                        {newApp{search: true, params: []string{"A=b"}}, []string{"php"}},
		"specify what to search for":                                    {newApp{search: true}, nil},
		"to search for names, use --search":                             {newApp{list: true}, []string{"php"}},
		"only one of --list":                                            {newApp{list: true, search: true}, []string{"php"}},
	} {
		if names, err := tt.terms(tt.args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("terms %q, %v, want an error with %q", names, err, want)
		}
	}
	if names, err := (&newApp{list: true}).terms(nil); err != nil || len(names) > 0 {
		t.Errorf("list %q, %v", names, err)
	}
}

func TestGrantInstallRightsIsRejected(t *testing.T) {
	if err := (&newApp{install: true}).run(t.Context(), []string{"installer"}); err == nil || !strings.Contains(err.Error(), "--grant-install-rights is not supported") {
		t.Errorf("the flag is accepted: %v", err)
	}
}

func TestTagsWithoutImagesAreListed(t *testing.T) {
	stream := &imagev1.ImageStream{
		Spec: imagev1.ImageStreamSpec{Tags: []imagev1.TagReference{
			{Name: "latest"}, {Name: "5.7"}, {Name: "old", Annotations: map[string]string{"tags": "hidden"}},
		}},
		Status: imagev1.ImageStreamStatus{Tags: []imagev1.NamedTagEventList{{Tag: "pushed"}, {Tag: "5.7"}}},
	}
	if got := tagsOf(stream); !slices.Equal(got, []string{"5.7", "latest", "pushed"}) {
		t.Errorf("tags %q", got)
	}
}

func TestMatchesArePrintedAsObjects(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	print := genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme).WithDefaultOutput("jsonpath={.items[*].kind} {.items[*].metadata.name}")
	o := &newApp{IOStreams: streams, print: print}
	template, stream := templatev1.Template{}, imagev1.ImageStream{}
	template.Name, stream.Name = "shop", "ruby"
	if err := o.printObjects([]templatev1.Template{template}, []imagev1.ImageStream{stream}); err != nil || out.String() != "Template ImageStream shop ruby" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestMissingKeysOfTemplatesAreErrors(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	command := New(nil, streams)
	if flag := command.Flags().Lookup("allow-missing-template-keys"); flag == nil || flag.DefValue != "false" {
		t.Errorf("the flag is %+v", flag)
	}
}

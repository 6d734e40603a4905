package apiserver

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func TestRegisterQueryReadsOptions(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := buildv1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	if err := RegisterQuery[*buildv1.BuildLogOptions](scheme); err != nil {
		t.Fatal(err)
	}
	codec := runtime.NewParameterCodec(scheme)
	for query, want := range map[string]*buildv1.BuildLogOptions{
		"":                               {},
		"follow=true&tailLines=5":        {Follow: true, TailLines: ptr.To[int64](5)},
		"follow&timestamps=false":        {Follow: true},
		"container=sti&unheardOf=1":      {Container: "sti"},
		"version=3&nowait=1&follow=0":    {Version: ptr.To[int64](3), NoWait: true},
		"sinceTime=2018-10-11T00:00:00Z": nil,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got := &buildv1.BuildLogOptions{}
		if err := codec.DecodeParameters(values, buildv1.GroupVersion, got); err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if want == nil {
			if got.SinceTime == nil || got.SinceTime.UTC().Year() != 2018 {
				t.Errorf("%s: since %v", query, got.SinceTime)
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for _, query := range []string{"tailLines=many", "sinceTime=yesterday"} {
		values, _ := url.ParseQuery(query)
		if err := codec.DecodeParameters(values, buildv1.GroupVersion, &buildv1.BuildLogOptions{}); err == nil {
			t.Errorf("%s was accepted", query)
		}
	}
}

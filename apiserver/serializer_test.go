package apiserver

import (
	"bytes"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kube-openapi/pkg/common"
)

// TestTypesWithoutProtobufAreStoredAsJSON checks the storage format in etcd and the formats offered
// to clients.
func TestTypesWithoutProtobufAreStoredAsJSON(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := routev1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypeWithName(gv.WithKind("Plain"), &plain{})
	for prefix, object := range map[string]runtime.Object{"k8s\x00": &routev1.Route{}, `{"metadata"`: &plain{}} {
		var stored bytes.Buffer
		if err := newStorageSerializer(scheme).Encode(object, &stored); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(stored.Bytes(), []byte(prefix)) {
			t.Errorf("%T is stored as %q", object, stored.String())
		}
	}
	for _, info := range (jsonOnly{serializer.NewCodecFactory(scheme)}).SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeProtobuf {
			t.Error("clients can request protobuf")
		}
	}
}

// countedWrites is a writer that counts the calls of Write.
type countedWrites struct{ count int }

func (w *countedWrites) Write(p []byte) (int, error) { w.count++; return len(p), nil }

func TestListsOfGroupsWithoutProtobufAreStreamed(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := routev1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	s := &Server{scheme: scheme, codecs: serializer.NewCodecFactory(scheme)}
	info, err := s.describeGroup(Group{
		GroupVersion: routev1.GroupVersion,
		Definitions:  func(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	json, ok := runtime.SerializerInfoForMediaType(info.NegotiatedSerializer.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		t.Fatal("the group does not serve JSON")
	}
	list := &routev1.RouteList{TypeMeta: metav1.TypeMeta{Kind: "RouteList", APIVersion: "route.openshift.io/v1"}, Items: make([]routev1.Route, 3)}
	var writes countedWrites
	if err := json.Serializer.Encode(list, &writes); err != nil {
		t.Fatal(err)
	}
	if writes.count < len(list.Items) {
		t.Errorf("a list of %d items is written in %d parts, want one for each item", len(list.Items), writes.count)
	}
}

// plain is a type without a protobuf form.
type plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (p *plain) DeepCopyObject() runtime.Object { copied := *p; return &copied }

package apiserver

import (
	"bytes"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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

// plain is a type without a protobuf form.
type plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (p *plain) DeepCopyObject() runtime.Object { copied := *p; return &copied }

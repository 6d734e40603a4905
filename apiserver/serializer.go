package apiserver

import (
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// storageSerializer encodes objects as protobuf, or as JSON if their types have no protobuf form.
// It decodes protobuf.
type storageSerializer struct {
	runtime.Serializer
	json runtime.Encoder
}

func newStorageSerializer(scheme *runtime.Scheme) runtime.Serializer {
	return storageSerializer{
		protobuf.NewSerializer(scheme, scheme),
		json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{}),
	}
}

// Encode writes an object.
func (s storageSerializer) Encode(object runtime.Object, w io.Writer) error {
	err := s.Serializer.Encode(object, w)
	if protobuf.IsNotMarshalable(err) { // nothing was written
		return s.json.Encode(object, w)
	}
	return err
}

// Identifier returns the name of the encoding.
func (s storageSerializer) Identifier() runtime.Identifier { return "protobuf-or-json" }

// jsonOnly negotiates formats other than protobuf with clients. A client that prefers protobuf
// receives JSON instead of an error.
type jsonOnly struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes returns all formats except protobuf.
func (j jsonOnly) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(j.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}

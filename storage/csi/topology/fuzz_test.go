package topology

import (
	"reflect"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
)

// FuzzNodeAffinity proves that a driver's answer to CreateVolume gives one affinity, and none that no node can meet by an empty term.
func FuzzNodeAffinity(f *testing.F) {
	for _, places := range [][]*csi.Topology{
		{{Segments: map[string]string{"a": "1", "b": "2"}}, {Segments: map[string]string{"a": "1"}}}, {nil, {}}, {},
	} {
		answer, err := proto.Marshal(&csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "v", AccessibleTopology: places}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		var response csi.CreateVolumeResponse
		if proto.Unmarshal(answer, &response) != nil {
			return
		}
		places := response.GetVolume().GetAccessibleTopology()
		affinity := NodeAffinity(places)
		if again := NodeAffinity(places); !reflect.DeepEqual(affinity, again) {
			t.Errorf("%v gives %v and %v", places, affinity, again)
		}
		if affinity == nil {
			return
		}
		for _, term := range affinity.Required.NodeSelectorTerms {
			if len(term.MatchExpressions) == 0 {
				t.Errorf("%v gives %v", places, affinity)
			}
		}
	})
}

package topology

import (
	"reflect"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
)

// FuzzNodeAffinity checks that the node affinity for a CreateVolume response is deterministic and
// has no empty term, which would match no node.
func FuzzNodeAffinity(f *testing.F) {
	for _, topologies := range [][]*csi.Topology{
		{{Segments: map[string]string{"a": "1", "b": "2"}}, {Segments: map[string]string{"a": "1"}}}, {nil, {}}, {},
	} {
		response, err := proto.Marshal(&csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "v", AccessibleTopology: topologies}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(response)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var response csi.CreateVolumeResponse
		if proto.Unmarshal(data, &response) != nil {
			return
		}
		topologies := response.GetVolume().GetAccessibleTopology()
		affinity := NodeAffinity(topologies)
		if second := NodeAffinity(topologies); !reflect.DeepEqual(affinity, second) {
			t.Errorf("%v: got %v and %v", topologies, affinity, second)
		}
		if affinity == nil {
			return
		}
		for _, term := range affinity.Required.NodeSelectorTerms {
			if len(term.MatchExpressions) == 0 {
				t.Errorf("%v: got %v", topologies, affinity)
			}
		}
	})
}

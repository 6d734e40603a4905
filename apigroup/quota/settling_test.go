package quota

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

func TestCountsLowerUsageOnlyWhenNoOtherServerReserves(t *testing.T) {
	start := time.Now()
	s := settling{period: settlingPeriod}
	for _, step := range []struct {
		name, version    string
		after            time.Duration
		counted, before  string
		want             string
		repeated, single bool
	}{
		{"three reserved by another server", "1", 0, "2", "5", "5", true, false},
		{"objects not stored yet", "1", settlingPeriod - time.Second, "2", "5", "5", true, false},
		{"count above the stored usage", "1", time.Second, "5", "2", "5", false, false},
		{"requests of the other server failed", "1", settlingPeriod, "2", "5", "2", false, false},
		{"another reservation", "2", settlingPeriod, "2", "5", "5", true, false},
		{"only one server", "3", 0, "2", "5", "2", false, true},
	} {
		of := &s
		if step.single {
			of = &settling{}
		}
		usage, more := of.keep("q", step.version, start.Add(step.after), amounts("secrets", step.counted), amounts("secrets", step.before))
		if !equality.Semantic.DeepEqual(usage, amounts("secrets", step.want)) || more != step.repeated {
			t.Errorf("%s: usage is %v, repeated: %t", step.name, usage, more)
		}
	}
	if usage, more := s.keep("new", "1", start, amounts("secrets", "5"), nil); !equality.Semantic.DeepEqual(usage, amounts("secrets", "5")) || more {
		t.Errorf("usage of a new quota is %v, repeated: %t", usage, more)
	}
}

package supervisor

import (
	"testing"
	"time"

	"github.com/slipway-platform/slipway/supervisor/component"
)

func TestProcessIsReadyWhenAllOfItsComponentsAre(t *testing.T) {
	process := ProcessStatus{Components: []ComponentStatus{{Name: "a"}, {Name: "b"}}}
	now := time.Unix(1000, 0)
	process.apply(component.Event{Component: "a", State: component.Starting}, now)
	process.apply(component.Event{Component: "a", State: component.Ready}, now.Add(2*time.Second))
	if process.State != component.Starting || process.Components[0].StartSeconds != 2 {
		t.Errorf("after one component: %+v", process)
	}
	process.apply(component.Event{Component: "b", State: component.Ready}, now.Add(3*time.Second))
	if process.State != component.Ready || process.Since != now.Add(3*time.Second) {
		t.Errorf("after both components: %+v", process)
	}
	failure := component.Event{Component: "b", State: component.Failed, Error: "b: lost"}
	process.apply(failure, now.Add(4*time.Second))
	if process.State == component.Ready || process.Components[1].Error != "b: lost" {
		t.Errorf("after a failure: %+v", process)
	}
}

func TestNoteKeepsTimeOfReadyComponent(t *testing.T) {
	process := ProcessStatus{Components: []ComponentStatus{{Name: "a"}}}
	now := time.Unix(1000, 0)
	process.apply(component.Event{Component: "a", State: component.Ready}, now)
	process.apply(component.Event{Component: "a", State: component.Ready, Note: "no HAProxy"}, now.Add(time.Second))
	if c := process.Components[0]; c.Note != "no HAProxy" || c.Since != now || process.Since != now {
		t.Errorf("got %+v", process)
	}
}

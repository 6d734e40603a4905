package idling

import "testing"

// FuzzRead checks that no annotation makes Read panic.
func FuzzRead(f *testing.F) {
	f.Add(`[{"kind":"Deployment","name":"web","replicas":2}]`, "2020-01-01T00:00:00Z")
	f.Add(`{}`, "")
	f.Add(`[{"replicas":99999999999}]`, "x")
	f.Fuzz(func(t *testing.T, targets, since string) {
		annotations := map[string]string{Targets: targets, IdledAt: since}
		if list, err := Read(annotations); err != nil && list != nil && len(list) > len(targets) {
			t.Errorf("%q has %d targets", targets, len(list))
		}
		Since(annotations)
	})
}

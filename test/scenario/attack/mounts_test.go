package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestPodCannotTakeMountsOfNode creates pods that would need many mounts on the node, because the
// kernel limits the number of mounts.
func TestPodCannotTakeMountsOfNode(t *testing.T) {
	s := tenants(t)
	const number, few = 400, 2
	list := func(format string, number int) string {
		var all []string
		for i := range number {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ", ")
	}
	pod := func(name, containers, volumes string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {schedulingGates: [{name: example.com/never}], containers: [%s], volumes: [%s]}}", name, containers, volumes)
	}
	const container, volume = "{name: main-%d, image: none}", "{name: v%d, emptyDir: {medium: Memory}}"
	parts := func(number int) string {
		return "{name: main, image: none, volumeMounts: [" + list("{name: v0, mountPath: /d%[1]d, subPath: d%[1]d}", number) + "]}"
	}
	for _, body := range map[string]func(number int) string{
		"containers": func(number int) string { return pod("containers", list(container, number), "") },
		"init-containers": func(number int) string {
			return strings.Replace(pod("init-containers", fmt.Sprintf(container, 0), ""), "spec: {", "spec: {initContainers: ["+list("{name: init-%d, image: none}", number)+"], ", 1)
		},
		"volumes": func(number int) string { return pod("volumes", fmt.Sprintf(container, 0), list(volume, number)) },
		"parts":   func(number int) string { return pod("parts", parts(number), fmt.Sprintf(volume, 0)) },
	} {
		s.mallory.MayNot("POST", kit.CorePath(s.evil, "pods"), body(number), "use several pods")
		s.mallory.May("POST", kit.CorePath(s.evil, "pods"), body(few))
	}
}

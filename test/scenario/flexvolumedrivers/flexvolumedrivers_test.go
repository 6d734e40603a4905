// Package flexvolumedrivers tests on a real cluster that FlexVolume drivers work despite faults.
// The tests kill processes in the middle of each operation, and use drivers that hang, print
// garbage, change or disappear. Nothing may remain of the volumes afterwards.
//
// Most tests share one cluster, but each test has its own drivers and namespace. Tests that kill
// the cluster's processes do not run in parallel with other tests.
package flexvolumedrivers

import (
	"flag"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// settings configures short timeouts for one driver, and makes the kubelet check volume sizes more
// often than once per minute.
const settings = `
kubeletArguments: {volume-stats-agg-period: [2s]}
slipway:
  flexVolume:
    deadline.example.com/disk:
      timeouts:
        {getvolumename: 1s, attach: 1s, waitforattach: 1s, mountdevice: 1s, mount: 1s, unmount: 1s, unmountdevice: 1s, detach: 1s}
`

// together is the number of tests that run in parallel. It can exceed the number of CPUs, because
// the tests mostly wait for the kubelet's next retry.
const together = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", together); err != nil {
		panic(err)
	}
	kit.MainWith(m, kit.Options{Node: settings})
}

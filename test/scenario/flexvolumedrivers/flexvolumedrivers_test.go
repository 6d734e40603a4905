// Package flexvolumedrivers tests on a real cluster that FlexVolume drivers work despite faults:
// processes that are killed in the middle of each operation, and drivers that hang, print garbage,
// change or disappear. Nothing may be left behind afterwards.
//
// Most tests share one cluster, each with its own drivers and its own namespace. Tests that kill
// the cluster's processes are not parallel, so that they run alone.
package flexvolumedrivers

import (
	"flag"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// settings gives one driver short timeouts, and makes the kubelet check volume sizes more often
// than once a minute.
const settings = `
kubeletArguments: {volume-stats-agg-period: [2s]}
slipway:
  flexVolume:
    deadline.example.com/disk:
      timeouts:
        {getvolumename: 1s, attach: 1s, waitforattach: 1s, mountdevice: 1s, mount: 1s, unmount: 1s, unmountdevice: 1s, detach: 1s}
`

// together is the number of tests that run in parallel. The tests spend most of their time waiting
// for the kubelet's next retry.
const together = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", together); err != nil {
		panic(err)
	}
	kit.MainWith(m, kit.Options{Node: settings})
}

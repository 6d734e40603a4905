package cli

import (
	"strings"
	"testing"

	"k8s.io/kubectl/pkg/cmd/util"
)

func TestCommandsOfOtherDistributionsNameReplacement(t *testing.T) {
	for line, want := range map[string]string{
		"cluster up --public-hostname=localhost": "run slipway up", "cluster down": "run slipway down", "cluster status": "run slipway status",
		"adm must-gather --dest-dir=/tmp": "slipway support",
	} {
		root := Tree("oc")
		var message string
		util.BehaviorOnFatal(func(text string, _ int) { message = text })
		root.SetArgs(strings.Fields(line))
		err := root.Execute()
		util.DefaultBehaviorOnFatal()
		if err != nil || !strings.Contains(message, want) {
			t.Errorf("oc %s: %q, %v, want %q", line, message, err, want)
		}
	}
}

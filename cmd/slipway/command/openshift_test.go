package command

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/config"
)

// openshift runs the program `openshift` and returns the client that it runs, with its arguments.
func openshift(t *testing.T, args ...string) (client []string, err error) {
	t.Helper()
	command := NewOpenShift(func(name string, args []string) error {
		client = append([]string{name}, args...)
		return nil
	})
	command.SetArgs(args)
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	err = command.ExecuteContext(t.Context())
	return client, err
}

func TestVerbsOfOpenShiftRunClient(t *testing.T) {
	for args, want := range map[string]string{
		"cli get pods -o name":       "oc get pods -o name",
		"admin policy who-can --all": "oc adm policy who-can --all",
		"adm top nodes":              "oc adm top nodes",
		"version":                    "",
	} {
		client, err := openshift(t, strings.Fields(args)...)
		if diff := cmp.Diff(want, strings.Join(client, " ")); diff != "" || err != nil {
			t.Errorf("openshift %s: %v (-want +got):\n%s", args, err, diff)
		}
	}
}

func TestOpenShiftStartNeedsSettingsOfExistingFile(t *testing.T) {
	dir := t.TempDir()
	if err := config.WriteDefaults(dir); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--public-master=master.example.com":        `masterPublicURL is "" in ` + dir,
		"master --cors-allowed-origins=//a,//b":     "corsAllowedOrigins is",
		"node --config=/x --public-master=m":        "--config excludes --public-master",
		"etcd":                                      "the argument must be master or node",
		"--config=/does-not-exist/node-config.yaml": "/does-not-exist/node-config.yaml",
	} {
		_, err := openshift(t, append([]string{"start", "--data-dir=" + dir}, strings.Fields(args)...)...)
		if err == nil || errors.Is(err, errNotRoot) || !strings.Contains(err.Error(), want) {
			t.Errorf("openshift start %s: error %v, want %q", args, err, want)
		}
	}
}

package command

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/config"
)

// openshift runs the `openshift` program. It returns the name of the client that the program runs,
// followed by the client's arguments.
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

func TestOpenShiftStartRequiresSettingsInExistingFile(t *testing.T) {
	dir := t.TempDir()
	if err := config.WriteDefaults(dir); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--public-master=master.example.com":        `masterPublicURL is "" in ` + dir,
		"master --cors-allowed-origins=//a,//b":     "corsAllowedOrigins is",
		"node --config=/x --public-master=m":        "--config cannot be used with --public-master",
		"etcd":                                      "the argument must be master or node",
		"--config=/does-not-exist/node-config.yaml": "/does-not-exist/node-config.yaml",
	} {
		_, err := openshift(t, append([]string{"start", "--data-dir=" + dir}, strings.Fields(args)...)...)
		if err == nil || errors.Is(err, errNotRoot) || !strings.Contains(err.Error(), want) {
			t.Errorf("openshift start %s: error %v, want %q", args, err, want)
		}
	}
}

func TestOpenShiftReportsMissingArguments(t *testing.T) {
	for args, want := range map[string]string{
		"":                "specify a command",
		"frobnicate":      "unknown command",
		"completion":      "Shell not specified.",
		"completion tcsh": `Unsupported shell type "tcsh"`,
		"start network":   "you must specify a configuration file with --config",
		"start network --config=n --enable=kubelet,other":      "the following components are not recognized: kubelet, other",
		"start network --config=n --disable=other":             "the following components are not recognized: other",
		"start network --config=n --disable=dns,proxy,plugins": "at least one node component must be enabled (dns, plugins, proxy)",
		"start network --config=n.yaml":                        "use: openshift start node --config=n.yaml",
	} {
		if _, err := openshift(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("openshift %s: error %v, want %q", args, err, want)
		}
	}
}

func TestOpenShiftDescribesItsCommands(t *testing.T) {
	for args, want := range map[string]string{
		"--help":              "OpenShift Application Platform",
		"help start":          "Start OpenShift components",
		"start master --help": "Start a master",
		"help start network":  "Start node network",
		"completion -h":       "prints shell code",
		"completion bash":     "__start_openshift",
		"completion zsh":      "#compdef openshift",
		"version":             "openshift v3.11.0",
	} {
		var out strings.Builder
		command := NewOpenShift(nil)
		command.SetArgs(strings.Fields(args))
		command.SetOut(&out)
		if err := command.Execute(); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("openshift %s: %v, %q is missing in\n%s", args, err, want, out.String())
		}
	}
}

package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/slipway-platform/slipway/platform/host"
)

// printNextSteps prints examples for a running cluster. It prints the developer's password only to
// a terminal. Users who cannot read the password file might be able to read logs of the output.
func printNextSteps(out io.Writer, h *host.Host, terminal bool) {
	if h.Joined() {
		fmt.Fprintf(out, "This host is the node %s. On a master, try:\n  slipway oc get nodes\n", h.Node.NodeName)
		return
	}
	fmt.Fprintf(out, `Try:
  %[1]s status
  %[1]s oc get nodes
  export KUBECONFIG=%[2]s
`, os.Args[0], h.AdminKubeconfig())
	if password, err := os.ReadFile(h.DeveloperPassword()); err == nil && h.DeveloperFile() != "" {
		argument := fmt.Sprintf(`"$(cat %s)"`, h.DeveloperPassword())
		if terminal {
			argument = strings.TrimSpace(string(password))
		}
		_, port := h.Master.APIAddress()
		fmt.Fprintf(out, "  %s oc login -u %s -p %s https://localhost:%d\n", os.Args[0], host.Developer, argument, port)
	}
	if console := h.ConsoleURL(); console != "" {
		fmt.Fprintf(out, "Web console:\n  %s\n", console)
	}
	fmt.Fprintf(out, `A first page:
  %[1]s oc new-project hello
  %[1]s oc new-app static-page
  %[1]s oc rollout status dc/static-page
  curl -H "Host: $(%[1]s oc get route static-page -o jsonpath={.spec.host})" http://localhost/
`, os.Args[0])
}

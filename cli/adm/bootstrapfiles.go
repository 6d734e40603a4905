package adm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/apigroup/project/standard"
	"github.com/slipway-platform/slipway/bootstrap/policy"
	"github.com/slipway-platform/slipway/cli/objects"
	"github.com/slipway-platform/slipway/oauth/page"
)

// newBootstrapFiles returns the `oc adm create-*` commands. They write the default policy, the
// default project template and the default OAuth pages, so that an administrator can customize
// them.
func newBootstrapFiles(streams genericiooptions.IOStreams) []*cobra.Command {
	return []*cobra.Command{
		newPolicyFile(streams),
		newProjectTemplate(streams),
		newPageTemplate(streams, "login", page.Login, "Create a login template"),
		newPageTemplate(streams, "provider-selection", page.Providers, "Create a provider selection template"),
		newPageTemplate(streams, "error", page.Error, "Create an error page template"),
	}
}

// newPolicyFile returns the `oc adm create-bootstrap-policy-file` command.
func newPolicyFile(streams genericiooptions.IOStreams) *cobra.Command {
	file, force := "", false
	command := &cobra.Command{
		Use:   "create-bootstrap-policy-file",
		Short: "Create a bootstrap policy file",
		Long: `Write the default cluster roles and their bindings to a file.

Change the file, then apply it with "oc auth reconcile -f FILE".`,
		Example: `  # Write the default roles of this version
  oc adm create-bootstrap-policy-file --filename=policy.json

  # Apply the file: add missing rules and bindings to the cluster
  oc auth reconcile -f policy.json`,
		Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			util.CheckErr(writePolicyFile(file, force))
			fmt.Fprintf(streams.Out, "Wrote the default policy to %s\n", file)
		},
	}
	command.Flags().StringVar(&file, "filename", "openshift.local.config/master/policy.json", "File to write.")
	command.Flags().BoolVarP(&force, "force", "f", false, "Replace the file if it exists.")
	return command
}

func writePolicyFile(file string, force bool) error {
	list, err := defaultPolicy()
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(list, "", "    ")
	if err != nil {
		return fmt.Errorf("write default policy: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("create policy file directory: %w", err)
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !force {
		mode |= os.O_EXCL
	}
	target, err := os.OpenFile(file, mode, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write policy file %q: it exists; use --force to replace it", file)
	}
	if err != nil {
		return fmt.Errorf("write policy file: %w", err)
	}
	_, err = target.Write(append(content, '\n'))
	return errors.Join(err, target.Close())
}

// defaultPolicy returns the default cluster roles and their bindings as one list.
func defaultPolicy() (*corev1.List, error) {
	roles, err := policy.AllRoles()
	if err != nil {
		return nil, err
	}
	bindings, err := policy.AllBindings()
	if err != nil {
		return nil, err
	}
	var all []runtime.Object
	for i := range roles {
		all = append(all, &roles[i])
	}
	for i := range bindings {
		all = append(all, &bindings[i])
	}
	return objects.ListOf(all), nil
}

// newProjectTemplate returns the `oc adm create-bootstrap-project-template` command.
func newProjectTemplate(streams genericiooptions.IOStreams) *cobra.Command {
	name := ""
	print := genericclioptions.NewPrintFlags("").WithDefaultOutput("yaml").WithTypeSetter(scheme.Scheme)
	command := &cobra.Command{
		Use:   "create-bootstrap-project-template",
		Short: "Create a bootstrap project template",
		Long: `Print the template for requested projects, so that an administrator can change it.

Each new project gets the objects of the template. Keep the project and the role binding
of its administrator in the template.`,
		Example: `  # Use your own template: print the default, change it, create it, and set projectRequestTemplate in the master's configuration
  oc adm create-bootstrap-project-template -o yaml > template.yaml
  oc create -f template.yaml -n default`,
		Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			template, err := standard.Template()
			util.CheckErr(err)
			template.Name = name
			printer, err := print.ToPrinter()
			util.CheckErr(err)
			util.CheckErr(printer.PrintObj(template, streams.Out))
		},
	}
	print.AddFlags(command)
	command.Flags().StringVar(&name, "name", "project-request", "Name of the template.")
	return command
}

// newPageTemplate returns a command that prints one page of the OAuth server.
func newPageTemplate(streams genericiooptions.IOStreams, kind, name, short string) *cobra.Command {
	return &cobra.Command{
		Use:   "create-" + kind + "-template",
		Short: short,
		Long: fmt.Sprintf(`Print a page of the OAuth server, so that an administrator can change it.

To use the changed page, set %s in oauthConfig.templates of the master's configuration.`, map[string]string{
			page.Login: "login", page.Providers: "providerSelection", page.Error: "error",
		}[name]),
		Example: fmt.Sprintf("  oc adm create-%[1]s-template > %[1]s.html", kind),
		Args:    cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			source, err := page.Source(name)
			util.CheckErr(err)
			fmt.Fprint(streams.Out, source)
		},
	}
}

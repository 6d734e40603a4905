// Package idle implements `oc idle`, which marks services as idle and scales down their pods until
// a client connects.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, idling applications.
// Annotations and messages match OpenShift 3.11's client.
package idle

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/internal/idling"
)

// command holds the state of `oc idle`.
type command struct {
	genericiooptions.IOStreams
	client          dynamic.Interface
	selector, file  string
	all, everywhere bool
	dryRun          bool
}

// New returns the `oc idle` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &command{IOStreams: streams}
	command := &cobra.Command{
		Use:   "idle (SERVICE ... | -l LABEL | --all | --resource-names-file FILENAME)",
		Short: "Idle scalable resources",
		Long: `Scale down the pods of services until a client connects to them.

The command scales the deployment configurations, deployments, replication controllers and stateful sets whose pods a service selects to zero. The
first connection to the service waits while they are scaled up again.`,
		Example: "  # Idle the services that a file lists\n  oc idle --resource-names-file to-idle.txt",
		Run: func(cmd *cobra.Command, args []string) {
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			o.client, err = factory.DynamicClient()
			util.CheckErr(err)
			util.CheckErr(o.run(cmd.Context(), namespace, args))
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "Labels of the services.")
	flags.BoolVar(&o.all, "all", false, "Idle all services of the project.")
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Idle services of every project.")
	flags.StringVar(&o.file, "resource-names-file", "", "File with the names of services, one on each line, as NAME or PROJECT/NAME.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Print what would be idled, without changing anything.")
	return command
}

func (o *command) run(ctx context.Context, namespace string, args []string) error {
	services, err := o.services(ctx, namespace, args)
	if err != nil {
		return err
	}
	var (
		problems []error
		all      []pair
	)
	for _, service := range services { // find all first, because services can share pods
		scalables, err := o.find(ctx, service)
		if err != nil {
			problems = append(problems, fmt.Errorf("idle service %q: %w", service.namespace+"/"+service.name, err))
			continue
		}
		all = append(all, pair{service, scalables})
	}
	// The time has fractional seconds, so that unidling can distinguish connections that were
	// opened before idling from later connections.
	now := time.Now().UTC().Format(time.RFC3339Nano)
	for _, pair := range all {
		problems = append(problems, o.mark(ctx, pair, now))
	}
	done := map[string]bool{}
	for _, pair := range all {
		problems = append(problems, o.scale(ctx, pair, now, done))
	}
	return errors.Join(problems...)
}

// services returns the services that arguments and flags select.
func (o *command) services(ctx context.Context, namespace string, args []string) (services []service, err error) {
	ways := 0
	for _, set := range []bool{len(args) > 0, o.selector != "", o.all, o.file != ""} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		return nil, errors.New("specify services, or use one of --selector, --all and --resource-names-file")
	}
	if o.file != "" {
		if args, err = names(o.file); err != nil {
			return nil, err
		}
	}
	if o.selector != "" || o.all {
		if o.everywhere {
			namespace = ""
		}
		return o.listServices(ctx, namespace)
	}
	for _, name := range args {
		in := namespace
		if project, bare, qualified := strings.Cut(name, "/"); qualified {
			if !slices.Contains([]string{"svc", "service", "services", "ep", "endpoints"}, project) {
				in = project
			}
			name = bare
		}
		service, err := o.getService(ctx, in, name)
		if err != nil {
			return nil, err
		}
		services = append(services, service)
	}
	return services, nil
}

// names returns the nonempty lines of a file.
func names(file string) (all []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read service names: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			all = append(all, line)
		}
	}
	return all, lines.Err()
}

// pair is a service and the scalable controllers of its pods.
type pair struct {
	service   service
	scalables []scalable
}

// find returns the scalable controllers of a service's pods. It returns an error if the pods have
// no scalable controllers, or if the service cannot be idled.
func (o *command) find(ctx context.Context, service service) ([]scalable, error) {
	pods, err := o.pods(ctx, service)
	if err != nil {
		return nil, err
	}
	scalables, err := o.scalables(ctx, service.namespace, pods)
	if err == nil && len(scalables) == 0 {
		err = errors.New("no valid scalable resources found to idle: it has no pods, or no controller of its pods can be scaled")
	}
	return scalables, err
}

// mark annotates a service as idle. From this point on, nodes queue connections to the service.
func (o *command) mark(ctx context.Context, item pair, now string) error {
	var targets []idling.Target
	for _, scalable := range item.scalables {
		targets = append(targets, scalable.Target)
	}
	text, err := json.Marshal(targets)
	if err != nil {
		return fmt.Errorf("write targets: %w", err)
	}
	annotations := map[string]any{idling.IdledAt: now, idling.Targets: string(text)}
	for _, resource := range item.service.resources() {
		of := scalable{idling.Target{Name: item.service.name}, resource}
		if err := o.patch(ctx, of, item.service.namespace, annotations, nil); err != nil {
			return fmt.Errorf("mark service %q: %w", item.service.name, err)
		}
	}
	o.printLine("The service %q has been marked as idled", item.service.namespace+"/"+item.service.name)
	for _, target := range targets {
		o.printLine("The service will unidle %s %q to %d replicas once it receives traffic", target.Kind, item.service.namespace+"/"+target.Name, target.Replicas)
	}
	return nil
}

// scale scales a service's controllers to zero and adds them to done. It skips controllers that are
// already in done.
func (o *command) scale(ctx context.Context, item pair, now string, done map[string]bool) error {
	for _, target := range item.scalables {
		name := item.service.namespace + "/" + target.Name
		if done[target.Kind+" "+name] {
			continue
		}
		done[target.Kind+" "+name] = true
		previous := map[string]any{idling.IdledAt: now, idling.PreviousScale: fmt.Sprint(target.Replicas)}
		if err := o.patch(ctx, target, item.service.namespace, previous, map[string]any{"replicas": 0}); err != nil {
			return fmt.Errorf("scale %s %q: %w", target.Kind, name, err)
		}
		o.printLine("%s %q has been idled", target.Kind, name)
	}
	return nil
}

// printLine prints a line. In a dry run, it appends "(dry run)".
func (o *command) printLine(format string, values ...any) {
	if o.dryRun {
		format += " (dry run)"
	}
	fmt.Fprintf(o.Out, format+"\n", values...)
}

// patch adds annotations to an object and merges spec into its spec. In a dry run, it does nothing.
func (o *command) patch(ctx context.Context, item scalable, namespace string, annotations, spec map[string]any) error {
	if o.dryRun {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	if spec != nil {
		patch["spec"] = spec
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	_, err = o.client.Resource(item.resource).Namespace(namespace).Patch(ctx, item.Name, types.MergePatchType, text, metav1.PatchOptions{})
	return err
}

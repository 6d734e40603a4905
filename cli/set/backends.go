package set

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	routev1 "github.com/openshift/api/route/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/util"
)

const (
	// defaultWeight is the weight that --equal sets, and the default weight of a backend.
	defaultWeight = 100
	// maxWeight is the maximum weight that the route API allows.
	maxWeight = 256
)

// backends holds the state of `oc set route-backends`.
type backends struct {
	zero, equal, adjust bool
	shares              []share
}

// share is the requested weight of one service.
type share struct {
	service string
	value   int
	// percent means that value is a percentage of the combined weight of this service and another
	// service. relative means that value is added to the current value.
	percent, relative bool
}

func newBackends(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t, b := newTargets(factory, streams, "backends updated"), &backends{}
	command := &cobra.Command{
		Use:   "route-backends ROUTE [--zero | --equal | [--adjust] SERVICE=WEIGHT[%]...]",
		Short: "Update the backends for a route",
		Long: `Print or set the services of a route, and their shares of the traffic.

The traffic is distributed to services in proportion to their weights. Weights are numbers from 0 to 256. If all are zero, no service gets traffic.
The services of the arguments replace the route's services. The first one becomes the primary service.

--adjust changes the weight of one service: to a number, by a signed number, or to its percentage of the traffic that it shares with the primary
service. For the primary service itself, the percentage is of the traffic that it shares with the first alternate service.`,
		Example: `  oc set route-backends web
  oc set route-backends web prod=99 canary=1
  oc set route-backends web --adjust canary=+10%
  oc set route-backends web --adjust canary=10
  oc set route-backends web --equal`,
		Run: func(command *cobra.Command, args []string) {
			args, err := b.read(args)
			util.CheckErr(err)
			if len(args) == 0 && t.all || t.selector != "" {
				args = []string{"routes"}
			}
			infos, err := t.find(ofResource("routes", args))
			util.CheckErr(err)
			if !b.zero && !b.equal && len(b.shares) == 0 {
				util.CheckErr(listBackends(streams.Out, infos))
				return
			}
			util.CheckErr(t.change(command, infos, b.change))
		},
	}
	t.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&b.adjust, "adjust", false, "Change the weight of one service, and keep the proportions of the others.")
	flags.BoolVar(&b.zero, "zero", false, "Set all weights to zero.")
	flags.BoolVar(&b.equal, "equal", false, "Set all weights to 100.")
	return command
}

// ofResource adds the prefix NAME/ to arguments that do not contain a resource yet.
func ofResource(name string, args []string) (all []string) {
	for _, arg := range args {
		if arg != name && !strings.Contains(arg, "/") {
			arg = name + "/" + arg
		}
		all = append(all, arg)
	}
	return all
}

// read parses the shares and returns the other arguments, which are route names.
func (b *backends) read(args []string) (names []string, err error) {
	for _, arg := range args {
		if !strings.Contains(arg, "=") {
			names = append(names, arg)
			continue
		}
		item, err := readShare(arg)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(b.shares, func(other share) bool { return other.service == item.service }) {
			return nil, fmt.Errorf("service %q appears twice", item.service)
		}
		if item.relative && !b.adjust {
			return nil, fmt.Errorf("parse %q: a relative weight needs --adjust", arg)
		}
		b.shares = append(b.shares, item)
	}
	switch {
	case b.zero && b.equal:
		return nil, errors.New("--zero and --equal may not be specified together")
	case b.adjust && b.equal:
		return nil, errors.New("--adjust and --equal may not be specified together")
	case b.adjust && b.zero:
		return nil, errors.New("--adjust and --zero may not be specified together")
	case (b.zero || b.equal) && len(b.shares) > 0:
		return nil, errors.New("--zero and --equal cannot be used with weights")
	case b.adjust && len(b.shares) != 1:
		return nil, errors.New("--adjust needs one service, as SERVICE=WEIGHT")
	case !b.adjust && slices.ContainsFunc(b.shares, func(s share) bool { return s.percent != b.shares[0].percent }):
		return nil, errors.New("use either percentages or weights for all services")
	}
	return names, nil
}

// readShare parses SERVICE=WEIGHT or SERVICE=+WEIGHT. The weight can be a percentage.
func readShare(arg string) (share, error) {
	service, text, _ := strings.Cut(arg, "=")
	number, percent := strings.CutSuffix(text, "%")
	value, err := strconv.Atoi(number)
	maximum := maxWeight
	if percent {
		maximum = 100
	}
	switch {
	case service == "" || text == "" || strings.Contains(service, "/"):
		return share{}, fmt.Errorf("expected NAME=WEIGHT, not %q", arg)
	case err != nil:
		return share{}, fmt.Errorf("WEIGHT must be a number: %q of service %q", text, service)
	case value > maximum || value < -maximum:
		return share{}, fmt.Errorf("parse weight %q of service %q: must be a number up to %d", text, service, maximum)
	}
	return share{service, value, percent, number[0] == '+' || number[0] == '-'}, nil
}

// change applies the flags and shares to a route's backends.
func (b *backends) change(object runtime.Object) error {
	route, ok := object.(*routev1.Route)
	if !ok {
		return errors.New("only routes have backends")
	}
	all := backendsOf(route)
	switch {
	case b.adjust:
		if err := adjust(all, b.shares[0]); err != nil {
			return err
		}
	case b.zero, b.equal:
		for _, backend := range all {
			*backend.Weight = 0
			if b.equal {
				*backend.Weight = defaultWeight
			}
		}
	default:
		all = nil
		for _, s := range b.shares {
			all = append(all, backend("Service", s.service, int32(s.value)))
		}
	}
	route.Spec.To, route.Spec.AlternateBackends = all[0], all[1:]
	return nil
}

// backendsOf returns copies of a route's backends, beginning with the primary backend. It sets the
// weight of backends that have none.
func backendsOf(route *routev1.Route) (all []routev1.RouteTargetReference) {
	for _, item := range append([]routev1.RouteTargetReference{route.Spec.To}, route.Spec.AlternateBackends...) {
		weight := int32(defaultWeight)
		if item.Weight != nil {
			weight = *item.Weight
		}
		all = append(all, backend(item.Kind, item.Name, weight))
	}
	return all
}

func backend(kind, name string, weight int32) routev1.RouteTargetReference {
	return routev1.RouteTargetReference{Kind: cmp.Or(kind, "Service"), Name: name, Weight: &weight}
}

// adjust changes the weight of one backend. If the share is a percentage, it is the backend's share
// of the combined weight of this backend and the primary backend. The primary backend is combined
// with the first alternate backend instead. The weights of the two backends then add up to 100, and
// the other weights are scaled accordingly.
func adjust(all []routev1.RouteTargetReference, s share) error {
	at := slices.IndexFunc(all, func(backend routev1.RouteTargetReference) bool { return backend.Name == s.service })
	switch {
	case at < 0:
		var names []string
		for _, backend := range all {
			names = append(names, backend.Name)
		}
		return fmt.Errorf("service %q is not a backend of the route; its backends are %s", s.service, strings.Join(names, ", "))
	case len(all) == 1 && s.percent:
		return fmt.Errorf("service %q is the only backend: use a weight instead of a percentage", s.service)
	}
	weight := all[at].Weight
	if !s.percent {
		value := s.value
		if s.relative {
			value += int(*weight)
		}
		*weight = int32(min(max(value, 0), maxWeight))
		return nil
	}
	other := 0
	if at == 0 {
		other = 1
	}
	both := int(*weight + *all[other].Weight)
	value := s.value
	if s.relative && both > 0 {
		value += int(*weight) * 100 / both
	}
	value = min(max(value, 0), 100)
	for i, backend := range all {
		if i != at && i != other && both > 0 {
			*backend.Weight = int32(int(*backend.Weight) * 100 / both)
		}
	}
	*weight, *all[other].Weight = int32(value), int32(100-value)
	shrink(all)
	return nil
}

// shrunkWeight is the largest weight after shrink has scaled the weights, as in OpenShift 3.
const shrunkWeight = 200

// shrink scales all weights down if any weight exceeds maxWeight. A weight above zero remains above
// zero.
func shrink(all []routev1.RouteTargetReference) {
	maximum := int32(0)
	for _, backend := range all {
		maximum = max(maximum, *backend.Weight)
	}
	for _, backend := range all {
		if maximum > maxWeight && *backend.Weight > 0 {
			*backend.Weight = max(*backend.Weight*shrunkWeight/maximum, 1)
		}
	}
}

// listBackends prints the backends of routes with their weights and percentages.
func listBackends(out io.Writer, infos []*resource.Info) error {
	table := tabwriter.NewWriter(out, 0, 2, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tKIND\tTO\tWEIGHT")
	for _, info := range infos {
		route, ok := info.Object.(*routev1.Route)
		if !ok {
			return fmt.Errorf("%s is not a route", info.ObjectName())
		}
		all, sum := backendsOf(route), 0
		for _, backend := range all {
			sum += int(*backend.Weight)
		}
		for _, backend := range all {
			text := strconv.Itoa(int(*backend.Weight))
			if len(all) > 1 && sum > 0 {
				text += fmt.Sprintf(" (%d%%)", int(*backend.Weight)*100/sum)
			}
			fmt.Fprintf(table, "routes/%s\t%s\t%s\t%s\n", info.Name, backend.Kind, backend.Name, text)
		}
	}
	return table.Flush()
}

package set

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

// probe holds the state of `oc set probe`.
type probe struct {
	containers                   string // pattern that container names must match
	readiness, liveness, startup bool
	remove                       bool

	tcp, url string
	command  []string
	// numbers maps the name of each numeric flag to its value. -1 means that the current value is
	// kept.
	numbers map[string]*int32
}

// numbers returns the numeric flags. For each flag, it returns the field that the flag sets, and
// the flag's description.
func numbers() map[string]struct {
	field func(*corev1.Probe) *int32
	what  string
} {
	type number = struct {
		field func(*corev1.Probe) *int32
		what  string
	}
	return map[string]number{
		"initial-delay-seconds": {func(p *corev1.Probe) *int32 { return &p.InitialDelaySeconds }, "Seconds to wait before the first attempt."},
		"timeout-seconds":       {func(p *corev1.Probe) *int32 { return &p.TimeoutSeconds }, "Seconds after which an attempt times out."},
		"period-seconds":        {func(p *corev1.Probe) *int32 { return &p.PeriodSeconds }, "Seconds between attempts."},
		"success-threshold":     {func(p *corev1.Probe) *int32 { return &p.SuccessThreshold }, "Consecutive successes after which the container is healthy."},
		"failure-threshold":     {func(p *corev1.Probe) *int32 { return &p.FailureThreshold }, "Consecutive failures after which the container is unhealthy."},
	}
}

func newProbe(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t, p := newTargets(factory, streams, "probes updated"), &probe{numbers: map[string]*int32{}}
	command := &cobra.Command{
		Use:   "probe TYPE/NAME --readiness|--liveness (--get-url=URL | --open-tcp=PORT | --remove | -- COMMAND)",
		Short: "Update a probe on a pod template",
		Long: `Set, change or remove the probes of the containers of pods and of controllers of pods.

A probe is an HTTP request to --get-url (the default host is the pod's address), a connection to --open-tcp,
or a command in the container. Without one of them, the command changes only the numbers of a probe.`,
		Example: `  oc set probe dc/web --readiness --get-url=http://:8080/healthz --period-seconds=5
  oc set probe dc/web --liveness --open-tcp=3306
  oc set probe dc/web --liveness -- test -e /tmp/alive
  oc set probe dc/web --readiness --liveness --remove`,
		Run: func(command *cobra.Command, args []string) {
			if at := command.ArgsLenAtDash(); at >= 0 {
				args, p.command = args[:at], args[at:]
			}
			util.CheckErr(t.check(args))
			util.CheckErr(p.validate())
			util.CheckErr(t.apply(command, args, p.change))
		},
	}
	t.addFlags(command)
	flags := command.Flags()
	flags.StringVarP(&p.containers, "containers", "c", "*", "Names of the containers. Can contain wildcards.")
	flags.BoolVar(&p.readiness, "readiness", false, "Change the readiness probe.")
	flags.BoolVar(&p.liveness, "liveness", false, "Change the liveness probe.")
	flags.BoolVar(&p.startup, "startup", false, "Change the startup probe.")
	flags.BoolVar(&p.remove, "remove", false, "Remove the probes.")
	flags.StringVar(&p.tcp, "open-tcp", "", "Number or name of a port to connect to.")
	flags.StringVar(&p.url, "get-url", "", "HTTP or HTTPS URL to request, such as http://:8080/healthz.")
	for name, number := range numbers() {
		p.numbers[name] = flags.Int32(name, -1, number.what)
	}
	return command
}

func (p *probe) validate() error {
	actions := 0
	for _, isSet := range []bool{p.tcp != "", p.url != "", len(p.command) > 0, p.remove} {
		if isSet {
			actions++
		}
	}
	switch {
	case !p.readiness && !p.liveness && !p.startup:
		return errors.New("you must specify one of --readiness, --liveness or both (or --startup)")
	case actions > 1:
		return errors.New("you may only set one of --get-url, --open-tcp, --remove, or a command")
	}
	_, err := p.handler()
	return err
}

// handler returns the action that the flags specify. It returns an empty action if the probe's
// current action is kept.
func (p *probe) handler() (corev1.ProbeHandler, error) {
	switch {
	case p.tcp != "":
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.Parse(p.tcp)}}, nil
	case len(p.command) > 0:
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: p.command}}, nil
	case p.url == "":
		return corev1.ProbeHandler{}, nil
	}
	get, err := parseGet(p.url)
	if err != nil {
		return corev1.ProbeHandler{}, fmt.Errorf("parse --get-url %q: %w", p.url, err)
	}
	return corev1.ProbeHandler{HTTPGet: get}, nil
}

// parseGet parses a probe's URL. Unlike url.Parse, it accepts a port name.
func parseGet(text string) (*corev1.HTTPGetAction, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	schemes := map[string]corev1.URIScheme{"http": corev1.URISchemeHTTP, "https": corev1.URISchemeHTTPS}
	if schemes[scheme] == "" {
		return nil, errors.New("must begin with http:// or https://")
	}
	host, request := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		host, request = rest[:end], strings.TrimPrefix(rest[end:], "/")
	}
	at := strings.LastIndex(host, ":")
	if at < 0 || host[at+1:] == "" || strings.HasSuffix(host, "]") {
		return nil, errors.New("port must be specified as part of a url")
	}
	path, err := url.Parse("/" + request)
	if err != nil {
		return nil, err
	}
	return &corev1.HTTPGetAction{
		Scheme: schemes[scheme], Host: strings.Trim(host[:at], "[]"), Port: intstr.Parse(host[at+1:]), Path: path.RequestURI(),
	}, nil
}

// change sets or removes the probes of the selected containers.
func (p *probe) change(object runtime.Object) error {
	exists := false
	has, err := polymorphichelpers.UpdatePodSpecForObjectFn(object, func(spec *corev1.PodSpec) error {
		for i := range spec.Containers {
			container := &spec.Containers[i]
			matches, err := path.Match(p.containers, container.Name)
			if err != nil {
				return fmt.Errorf("parse --containers %q: %w", p.containers, err)
			}
			if !matches {
				continue
			}
			exists = true
			for _, of := range []struct {
				enabled bool
				name    string
				probe   **corev1.Probe
			}{{p.readiness, "readiness", &container.ReadinessProbe}, {p.liveness, "liveness", &container.LivenessProbe}, {p.startup, "startup", &container.StartupProbe}} {
				if !of.enabled {
					continue
				}
				if err := p.update(of.probe); err != nil {
					return fmt.Errorf("container %q has no %s probe: %w", container.Name, of.name, err)
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !has:
		return errors.New("it has no containers")
	case !exists:
		return fmt.Errorf("it has no container %q", p.containers)
	}
	return nil
}

func (p *probe) update(of **corev1.Probe) error {
	handler, err := p.handler()
	switch {
	case err != nil:
		return err
	case p.remove:
		*of = nil
		return nil
	case handler != corev1.ProbeHandler{}:
		if *of == nil {
			*of = &corev1.Probe{}
		}
		(*of).ProbeHandler = handler
	case *of == nil:
		*of = &corev1.Probe{} // the API server rejects a probe without a handler
	}
	for name, number := range numbers() {
		if value := *p.numbers[name]; value >= 0 {
			*number.field(*of) = value
		}
	}
	return nil
}

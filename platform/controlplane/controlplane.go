// Package controlplane creates the components of the `slipway control-plane` process.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/metrics"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/bootstrap"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/controller/descheduler"
	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/kube/scheduler"
	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/table"
	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// Groups of components that run on only one of several masters. Each value is the name of a Lease.
const (
	upstreamControllers = "kube-controller-manager"
	upstreamScheduler   = "kube-scheduler"
	ownControllers      = "slipway-controllers"
	// imageRegistry is the registry's group. The registry can run on any master if all masters can
	// reach its storage.
	imageRegistry = "slipway-registry"
)

// Host is a host together with the objects that the components of its control plane share.
type Host struct {
	*host.Host
	// deps contains the clients and caches that the controllers share.
	deps *controller.Deps
	// networkClient reads and changes the objects of the pod network.
	networkClient networkclient.Interface
	// leadership elects the master that runs the controllers. It is nil if this is the only master.
	leadership *controller.Leadership
	// settings compares the settings of several masters. It is nil on the only master.
	settings *masters.Settings
	// expand closes the expanded channel when a second master joins the only master. Closing the
	// channel stops the control plane.
	expand   func()
	expanded chan struct{}
	// recorder provides the API server's authentication and audit log to other servers in the
	// process.
	recorder *apiserver.Recorder
	// usage contains the resource usage of nodes and pods that the API server serves.
	usage *metrics.Usage
	// drivers contains the control plane's FlexVolume drivers. attachments contains its volume
	// attachments.
	drivers     *flexvolume.Registry
	attachments *volumeplugin.Attachments
}

// newHost returns a host whose controllers have no clients yet.
func newHost(h *host.Host) *Host {
	expanded := make(chan struct{})
	return &Host{
		Host: h, expand: sync.OnceFunc(func() { close(expanded) }), expanded: expanded,
		recorder: &apiserver.Recorder{}, usage: metrics.NewUsage(),
		drivers: h.Drivers(host.ControlPlane), attachments: h.Attachments(host.ControlPlane),
	}
}

// New prepares a host to run the control plane. It returns an error if this program must not use
// the host's data. Before an upgrade, it saves etcd's data.
func New(ctx context.Context, h *host.Host) (*Host, error) {
	if err := h.CheckVersion(); err != nil {
		return nil, err
	}
	c := newHost(h)
	c.saveBeforeUpgrade(ctx)
	return c, c.connect()
}

// Components creates the control plane's components.
func (h *Host) Components() ([]component.Entry, error) { return Table().Build(h, h.gate) }

// Started records that the control plane is ready with the current version.
func (h *Host) Started() {
	if err := h.VersionFile().Record(kube.Version()); err != nil {
		slog.Warn("cannot record the data version", "error", err)
	}
}

// Table lists the components that `slipway control-plane` runs.
func Table() table.Table[*Host] {
	afterAPI := []string{"apiserver"}
	led := []string{"informers", "leadership"}
	return table.Table[*Host]{
		{Name: "etcd", Build: (*Host).etcd},
		{Name: "etcd-snapshots", After: []string{"etcd"}, Build: (*Host).etcdSnapshots},
		{Name: "etcd-maintenance", After: []string{"etcd"}, Build: (*Host).etcdMaintenance},
		{Name: "apiserver", After: []string{"etcd"}, Build: (*Host).apiServer},
		{Name: "informers", After: afterAPI, Build: (*Host).informers},
		{Name: "leadership", After: afterAPI, Build: (*Host).elections},
		{Name: "shared-settings", After: afterAPI, Build: (*Host).sharedSettings},
		{Name: "shared-files", After: afterAPI, Build: (*Host).sharedFiles},
		{Name: "etcd-members", After: []string{"leadership"}, Build: (*Host).etcdMembers, Group: ownControllers},
		{Name: "controllers", After: []string{"apiserver", "leadership"}, Build: (*Host).controllers, Group: upstreamControllers},
		{Name: "scheduler", After: []string{"apiserver", "leadership"}, Build: (*Host).scheduler, Group: upstreamScheduler},
		{Name: "policy-status", After: led, Build: (*Host).policyStatus, Group: ownControllers},
		{Name: "descheduler", After: []string{"apiserver", "leadership"}, Build: (*Host).descheduler, Group: ownControllers},
		{Name: "flexvolume", Build: (*Host).flexVolumes},
		{Name: "flexvolume-ended-calls", After: []string{"apiserver", "flexvolume"}, Build: (*Host).endedFlexVolumeCalls},
		{Name: "flexvolume-recovery", After: []string{"flexvolume-ended-calls", "leadership"}, Build: (*Host).flexVolumeRecovery, Group: ownControllers},
		{Name: "attach-detach", After: []string{"informers", "flexvolume-recovery", "leadership"}, Build: (*Host).attachDetach, Group: ownControllers},
		{Name: "expander", After: []string{"informers", "flexvolume", "leadership"}, Build: (*Host).expander, Group: ownControllers},
		{Name: "policy", After: afterAPI, Build: (*Host).policy},
		{Name: "bootstrap", After: []string{"policy", "leadership"}, Build: (*Host).bootstrap, Group: ownControllers},
		{Name: "resource-metrics", After: afterAPI, Build: (*Host).resourceMetrics},
		{Name: "allocator", After: led, Build: (*Host).allocator, Group: ownControllers},
		{Name: "hosts", After: led, Build: (*Host).hosts, Group: ownControllers},
		{Name: "node-groups", After: led, Build: (*Host).nodeGroups, Group: ownControllers},
		{Name: "pod-network", After: led, Build: (*Host).podNetwork, Group: ownControllers},
		{Name: "egress-ips", After: led, Build: (*Host).egressIPs, Group: ownControllers},
		{Name: "projects", After: led, Build: (*Host).projects, Group: ownControllers},
		{Name: "service-account-secrets", After: led, Build: (*Host).serviceAccountSecrets, Group: ownControllers},
		{Name: "service-certificates", After: led, Build: (*Host).serviceCertificates, Group: ownControllers},
		{Name: "ingress", After: led, Build: (*Host).ingress, Group: ownControllers},
		{Name: "registry", After: led, Build: (*Host).registry, Group: imageRegistry},
		{Name: "image-streams", After: led, Build: (*Host).imageStreams, Group: ownControllers},
		{Name: "image-signatures", After: led, Build: (*Host).imageSignatures, Group: ownControllers},
		{Name: "deployments", After: led, Build: (*Host).deployments, Group: ownControllers},
		{Name: "master-dns", After: []string{"policy"}, Build: (*Host).masterDNS},
		{Name: "orphaned-endpoints", After: led, Build: (*Host).orphanedEndpoints, Group: ownControllers},
		{Name: "ingress-addresses", After: led, Build: (*Host).ingressAddresses, Group: ownControllers},
		{Name: "unidling", After: led, Build: (*Host).unidling, Group: ownControllers},
		{Name: "service-catalog", After: led, Build: (*Host).serviceCatalog, Group: ownControllers},
		{Name: "template-instances", After: led, Build: (*Host).templateInstances, Group: ownControllers},
		{Name: "builds", After: led, Build: (*Host).builds, Group: ownControllers},
		{Name: "encryption", After: []string{"apiserver", "leadership"}, Build: (*Host).encryptionRewriter, Group: ownControllers},
		{Name: "certificates", After: afterAPI, Build: (*Host).certificates},
		{Name: "configuration", After: afterAPI, Build: (*Host).configuration},
	}
}

func (h *Host) etcd() (component.Component, error) {
	etcd := &kube.Etcd{
		Dir:           h.Master.EtcdDirectory(),
		Socket:        h.EtcdSocket(),
		ClientAddress: h.Master.EtcdAddress(),
		PeerAddress:   h.Master.EtcdPeerAddress(),
		CertFile:      h.Credentials.EtcdServer.Cert,
		KeyFile:       h.Credentials.EtcdServer.Key,
		CAFile:        h.Credentials.EtcdCA.Cert,
	}
	if h.Cluster != nil {
		etcd.ClientAddress = hostaddr.Reachable(etcd.ClientAddress, h.Address)
		etcd.PeerAddress = hostaddr.Reachable(etcd.PeerAddress, h.Address)
		etcd.Peers = &kube.EtcdPeers{
			Name: h.Node.NodeName, Cluster: h.Cluster.Etcd, Client: h.EtcdMembers(), Reset: h.Cluster.Reset, ResetDone: h.EtcdResetDone,
		}
	}
	return etcd, nil
}

// informers returns the component that runs the controllers' shared caches.
func (h *Host) informers() (component.Component, error) { return h.deps, nil }

func (h *Host) controllers() (component.Component, error) {
	signing, _ := h.serviceAccountKeys()
	recycler := h.Path("recycler.yaml")
	if err := atomicfile.Write(recycler, kube.RecyclerTemplate(image.ToolsName), 0o600); err != nil {
		return nil, err
	}
	return &kube.Controllers{
		Kubeconfig:            h.Credentials.ControllerManagerKubeconfig,
		ServiceAccountKeyFile: signing,
		RootCAFile:            h.Credentials.CA.Cert,
		SigningCertFile:       h.Credentials.CA.Cert,
		SigningKeyFile:        h.Credentials.CA.Key,
		VolumePluginDir:       h.Node.VolumePluginDir(),
		RecyclerTemplate:      recycler,
		Arguments:             arguments.Map(h.Master.KubernetesMasterConfig.ControllerArguments),
	}, nil
}

func (h *Host) policyStatus() (component.Component, error) {
	return &kube.PolicyStatus{Deps: h.deps}, nil
}

func (h *Host) scheduler() (component.Component, error) {
	settings := func(c *config.Config) kube.SchedulerSettings {
		return kube.SchedulerSettings{Settings: scheduler.Settings{
			Policy: c.Scheduler.Policy, Configuration: c.Scheduler.Configuration, DisablePreemption: c.Scheduler.DisablePreemption,
		}, Arguments: arguments.Map(c.Scheduler.Arguments)}
	}
	upstream := &kube.Scheduler{
		Kubeconfig: h.Credentials.SchedulerKubeconfig, File: filepath.Join(h.RunDir(), "scheduler.yaml"), Settings: settings(h.Config),
	}
	if name := h.Scheduler.ConfigMap; name != "" {
		upstream.ConfigMap = &kube.SchedulerConfigMap{
			Client: h.deps.Kube, Namespace: h.Scheduler.ConfigMapNamespace, Name: name, Decode: decodePolicy,
		}
	}
	return table.Adjustable{Component: upstream, Adjustments: []reload.Adjustment{{
		Keys: config.SchedulerKeys(),
		Prepare: func(next *config.Config) (func(), error) {
			if next.Scheduler.ConfigMap != h.Scheduler.ConfigMap || next.Scheduler.ConfigMapNamespace != h.Scheduler.ConfigMapNamespace {
				return nil, errors.New("the changed policy-configmap takes effect after a restart of the scheduler; run: slipway master-restart scheduler")
			}
			return upstream.Prepare(settings(next))
		},
	}}}, nil
}

// decodePolicy decodes a scheduler policy from a ConfigMap.
func decodePolicy(name string, data []byte) (scheduler.Settings, error) {
	policy, configuration, err := config.DecodeSchedulerPolicy(name, data)
	return scheduler.Settings{Policy: policy, Configuration: configuration}, err
}

// descheduler returns the component that evicts pods according to a policy, if a policy is
// configured.
func (h *Host) descheduler() (component.Component, error) {
	settings := h.Master.Slipway.Descheduler
	if settings.PolicyConfigFile == "" {
		return component.Disabled("descheduler"), nil
	}
	return &descheduler.Component{
		Deps: h.deps, PolicyFile: settings.PolicyConfigFile, Interval: settings.Interval.Duration, DryRun: settings.DryRun,
	}, nil
}

func (h *Host) resourceMetrics() (component.Component, error) {
	return &metrics.Collector{Deps: h.deps, Usage: h.usage}, nil
}

func (h *Host) policy() (component.Component, error) { return &bootstrap.Policy{Deps: h.deps}, nil }

func (h *Host) bootstrap() (component.Component, error) {
	var without []string
	if h.Node.Slipway.LocalStorage.Disabled {
		without = append(without, bootstrap.LocalStorage)
	}
	if len(h.Master.TemplateServiceBrokerConfig.TemplateNamespaces) == 0 {
		without = append(without, bootstrap.TemplateBroker)
	}
	if !h.Master.OffersBundles() {
		without = append(without, bootstrap.AnsibleBroker)
	}
	return &bootstrap.Objects{Deps: h.deps, Without: without}, nil
}

// certificates returns the component that renews certificates before they expire.
func (h *Host) certificates() (component.Component, error) {
	return &pki.Renewer{
		Spec:     func() (pki.Spec, error) { return h.PKISpec(), nil },
		Interval: pki.RenewalInterval(h.Master.Slipway.CertificateLifetime.Duration),
	}, nil
}

// configuration returns the component that applies changes to the configuration files.
func (h *Host) configuration() (component.Component, error) {
	files := []string{config.MasterFile(h.DataDir), config.NodeFile(h.DataDir)}
	for _, file := range []string{h.File, h.Scheduler.File} {
		if file != "" {
			files = append(files, file)
		}
	}
	reloader := &reload.Reloader{
		Load:  func() (*config.Config, error) { return config.Load(h.DataDir, h.File) },
		Files: files, Start: h.Config,
	}
	reloader.Init()
	return reloader, nil
}

// connect creates the controllers' clients and caches.
func (h *Host) connect() error {
	config, err := pki.ReadKubeconfig(h.Credentials.MasterKubeconfig)
	if err != nil {
		return err
	}
	if h.deps, err = controller.NewDeps(config); err != nil {
		return err
	}
	if h.networkClient, err = networkclient.NewForConfig(h.deps.Config); err != nil {
		return fmt.Errorf("create network client: %w", err)
	}
	if h.Cluster == nil {
		return nil
	}
	elections, err := kubernetes.NewForConfig(h.limitedConfig(20, 40))
	if err != nil {
		return fmt.Errorf("create election client: %w", err)
	}
	h.leadership = &controller.Leadership{Client: elections, Identity: h.Node.NodeName}
	return nil
}

// limitedConfig returns a client configuration for the control plane with a separate rate limit, in
// requests per second.
func (h *Host) limitedConfig(qps float32, burst int) *rest.Config {
	config := rest.CopyConfig(h.deps.Config)
	config.RateLimiter, config.QPS, config.Burst = nil, qps, burst
	return config
}

// gate returns the gate that starts and stops an entry's component, or nil if the component always
// runs.
func (h *Host) gate(name, group string) (component.Gate, error) {
	if group == "" && name != host.EtcdPart || group == imageRegistry && !h.SharesRegistry() {
		return nil, nil
	}
	parts, err := h.StoppedParts()
	if err != nil {
		return nil, err
	}
	switch {
	case group != "" && group != imageRegistry && slices.Contains(parts, host.ControllersPart), name == host.EtcdPart && slices.Contains(parts, host.EtcdPart):
		return component.Closed{}, nil
	case group != "" && h.leadership != nil:
		return h.leadership.Group(group), nil
	}
	return nil, nil
}

// Groups returns the groups of components that run on only one of several masters. Each value is
// the name of a Lease.
func Groups() []string {
	return []string{upstreamControllers, upstreamScheduler, ownControllers, imageRegistry}
}

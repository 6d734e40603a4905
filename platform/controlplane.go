package platform

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/slipway-platform/slipway/apigroup/metrics"
	"github.com/slipway-platform/slipway/bootstrap"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/controller/descheduler"
	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/kube/scheduler"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// controlPlaneTable lists the components that `slipway control-plane` runs.
func controlPlaneTable() []entry {
	afterAPI := []string{"apiserver"}
	led := []string{"informers", "leadership"}
	return []entry{
		{"etcd", nil, (*Host).etcd, ""},
		{"etcd-snapshots", []string{"etcd"}, (*Host).etcdSnapshots, ""},
		{"etcd-maintenance", []string{"etcd"}, (*Host).etcdMaintenance, ""},
		{"apiserver", []string{"etcd"}, (*Host).apiServer, ""},
		{"informers", afterAPI, (*Host).informers, ""},
		{"leadership", afterAPI, (*Host).elections, ""},
		{"shared-settings", afterAPI, (*Host).sharedSettings, ""},
		{"shared-files", afterAPI, (*Host).sharedFilesComponent, ""},
		{"etcd-members", []string{"leadership"}, (*Host).etcdMembers, ownControllers},
		{"controllers", []string{"apiserver", "leadership"}, (*Host).controllers, upstreamControllers},
		{"scheduler", []string{"apiserver", "leadership"}, (*Host).scheduler, upstreamScheduler},
		{"policy-status", led, (*Host).policyStatus, ownControllers},
		{"descheduler", []string{"apiserver", "leadership"}, (*Host).descheduler, ownControllers},
		{"flexvolume", nil, (*Host).flexVolumes, ""},
		{"flexvolume-ended-calls", []string{"apiserver", "flexvolume"}, (*Host).endedFlexVolumeCalls, ""},
		{"flexvolume-recovery", []string{"flexvolume-ended-calls", "leadership"}, (*Host).flexVolumeRecovery, ownControllers},
		{"attach-detach", []string{"informers", "flexvolume-recovery", "leadership"}, (*Host).attachDetach, ownControllers},
		{"expander", []string{"informers", "flexvolume", "leadership"}, (*Host).expander, ownControllers},
		{"policy", afterAPI, (*Host).policy, ""},
		{"bootstrap", []string{"policy", "leadership"}, (*Host).bootstrap, ownControllers},
		{"resource-metrics", afterAPI, (*Host).resourceMetrics, ""},
		{"allocator", led, (*Host).allocator, ownControllers},
		{"hosts", led, (*Host).hosts, ownControllers},
		{"node-groups", led, (*Host).nodeGroups, ownControllers},
		{"pod-network", led, (*Host).podNetwork, ownControllers},
		{"egress-ips", led, (*Host).egressIPs, ownControllers},
		{"projects", led, (*Host).projects, ownControllers},
		{"service-account-secrets", led, (*Host).serviceAccountSecrets, ownControllers},
		{"service-certificates", led, (*Host).serviceCertificates, ownControllers},
		{"ingress", led, (*Host).ingress, ownControllers},
		{"registry", led, (*Host).registry, imageRegistry},
		{"image-streams", led, (*Host).imageStreams, ownControllers},
		{"image-signatures", led, (*Host).imageSignatures, ownControllers},
		{"deployments", led, (*Host).deployments, ownControllers},
		{"master-dns", []string{"policy"}, (*Host).masterDNS, ""},
		{"ingress-addresses", led, (*Host).ingressAddresses, ownControllers},
		{"unidling", led, (*Host).unidling, ownControllers},
		{"service-catalog", led, (*Host).serviceCatalog, ownControllers},
		{"template-instances", led, (*Host).templateInstances, ownControllers},
		{"builds", led, (*Host).builds, ownControllers},
		{"encryption", []string{"apiserver", "leadership"}, (*Host).encryptionRewriter, ownControllers},
		{"certificates", afterAPI, (*Host).certificates, ""},
		{"configuration", afterAPI, (*Host).configuration, ""},
	}
}

func (h *Host) etcd() (component.Component, error) {
	etcd := &kube.Etcd{
		Dir:           h.Master.EtcdDirectory(),
		Socket:        h.etcdSocket(),
		ClientAddress: h.Master.EtcdAddress(),
		PeerAddress:   h.Master.EtcdPeerAddress(),
		CertFile:      h.credentials.EtcdServer.Cert,
		KeyFile:       h.credentials.EtcdServer.Key,
		CAFile:        h.credentials.EtcdCA.Cert,
	}
	if h.cluster != nil {
		etcd.ClientAddress = hostaddr.Reachable(etcd.ClientAddress, h.address)
		etcd.PeerAddress = hostaddr.Reachable(etcd.PeerAddress, h.address)
		etcd.Peers = &kube.EtcdPeers{
			Name: h.Node.NodeName, Cluster: h.cluster.Etcd, Client: h.EtcdMembers(), Reset: h.cluster.Reset, ResetDone: h.etcdResetDone,
		}
	}
	return etcd, nil
}

// informers returns the component that runs the controllers' shared caches.
func (h *Host) informers() (component.Component, error) { return h.deps, nil }

func (h *Host) controllers() (component.Component, error) {
	signing, _ := h.serviceAccountKeys()
	recycler := h.path("recycler.yaml")
	if err := atomicfile.Write(recycler, kube.RecyclerTemplate(image.ToolsName), 0o600); err != nil {
		return nil, err
	}
	return &kube.Controllers{
		Kubeconfig:            h.credentials.ControllerManagerKubeconfig,
		ServiceAccountKeyFile: signing,
		RootCAFile:            h.credentials.CA.Cert,
		SigningCertFile:       h.credentials.CA.Cert,
		SigningKeyFile:        h.credentials.CA.Key,
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
		Kubeconfig: h.credentials.SchedulerKubeconfig, File: filepath.Join(h.RunDir(), "scheduler.yaml"), Settings: settings(h.Config),
	}
	if name := h.Scheduler.ConfigMap; name != "" {
		upstream.ConfigMap = &kube.SchedulerConfigMap{
			Client: h.deps.Kube, Namespace: h.Scheduler.ConfigMapNamespace, Name: name, Decode: decodePolicy,
		}
	}
	return adjustable{upstream, []reload.Adjustment{{
		Keys: config.SchedulerKeys(),
		Prepare: func(next *config.Config) (func(), error) {
			if next.Scheduler.ConfigMap != h.Scheduler.ConfigMap || next.Scheduler.ConfigMapNamespace != h.Scheduler.ConfigMapNamespace {
				return nil, errors.New("another policy-configmap takes effect at the next start; run: slipway master-restart scheduler")
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
		Spec:     func() (pki.Spec, error) { return h.pkiSpec(), nil },
		Interval: pki.RenewalInterval(h.Master.Slipway.CertificateLifetime.Duration),
	}, nil
}

// pkiSpec describes this host's credentials.
func (h *Host) pkiSpec() pki.Spec {
	return pki.Spec{
		Dir:             h.PKIDir(),
		AdminKubeconfig: h.AdminKubeconfig(),
		APIURL:          h.apiURL(h.publicAddress().String()),
		LoopbackURL:     h.apiURL("127.0.0.1"),
		NodeURL:         h.nodeURL(),
		NodeName:        h.Node.NodeName,
		APIHosts:        slices.Concat(h.names(), h.Master.PublicHosts(), []string{h.Master.APIServiceIP().String()}),
		NodeHosts:       h.names(),
		RegistryHosts:   h.RegistryNames().Hosts(),
		ClusterDomain:   h.Node.DNSDomain,
		LeafLifetime:    h.Master.Slipway.CertificateLifetime.Duration,
		CALifetime:      h.Master.Slipway.CALifetime.Duration,
	}
}

// ReplaceKeys replaces all keys and certificates of this host. It returns the number of issued
// certificates and kubeconfigs, and the directory that contains them.
func (h *Host) ReplaceKeys() (count int, dir string, err error) {
	if err := h.findAddress(); err != nil {
		return 0, "", err
	}
	spec := h.pkiSpec()
	spec.ReplaceKeys = true
	credentials, err := pki.Ensure(spec)
	if err != nil {
		return 0, "", err
	}
	return len(credentials.Issued), spec.Dir, nil
}

// configuration returns the component that applies changes to the configuration files.
func (h *Host) configuration() (component.Component, error) {
	files := []string{config.MasterFile(h.DataDir), config.NodeFile(h.DataDir)}
	for _, file := range []string{h.file, h.Scheduler.File} {
		if file != "" {
			files = append(files, file)
		}
	}
	reloader := &reload.Reloader{
		Load:  func() (*config.Config, error) { return config.Load(h.DataDir, h.file) },
		Files: files, Start: h.Config,
	}
	reloader.Init()
	return reloader, nil
}

package command

import (
	"context"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/registry"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// registryCommand returns the command that serves the registry without a cluster.
func registryCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "registry CONFIGURATION",
		Short:   "Serve a stand-alone image registry, without a cluster",
		GroupID: "host",
		Long: `Serve images without a cluster. The file has the format of distribution's registry (docker-registry). Environment variables of that registry
apply, too, for instance REGISTRY_HTTP_ADDR and REGISTRY_STORAGE_S3_SECRETKEY:

  version: 0.1
  storage: {filesystem: {rootdirectory: /srv/registry}, delete: {enabled: true}}
  http: {addr: ":5000", tls: {certificate: /etc/registry/tls.crt, key: /etc/registry/tls.key}}
  auth: {htpasswd: {realm: registry, path: /etc/registry/htpasswd}}

The storage is filesystem or s3, the authentication htpasswd or token. Unknown settings are rejected. The command runs until SIGTERM, and
notifies systemd when it serves.`,
		Example: "  slipway registry /etc/docker/registry/config.yml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := registry.ReadConfiguration(args[0])
			if err != nil {
				return err
			}
			logrus.SetLevel(logrus.WarnLevel)
			if level, err := logrus.ParseLevel(string(settings.Log.Level)); err == nil && level < logrus.InfoLevel {
				logrus.SetLevel(level)
			}
			return runForeground(cmd.Context(), &notifying{&registry.Standalone{Settings: settings}})
		},
	}
}

// notifying is a component that notifies systemd when it is ready.
type notifying struct{ component.Component }

// Run runs the component and notifies systemd when it is ready.
func (n *notifying) Run(ctx context.Context, ready func()) error {
	return n.Component.Run(ctx, func() {
		_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
		ready()
	})
}

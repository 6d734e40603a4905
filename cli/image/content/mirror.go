package content

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// mirror holds the state of `oc image mirror`.
type mirror struct {
	genericiooptions.IOStreams
	access access
	filter filter

	files   []string
	dryRun  bool
	places  int
	buckets buckets
}

func newMirror(streams genericiooptions.IOStreams) *cobra.Command {
	m := &mirror{IOStreams: streams}
	command := &cobra.Command{
		Use: "mirror SOURCE DESTINATION... | SOURCE=DESTINATION... | -f FILE", Short: "Mirror images from one repository to another",
		Long: `Copy images between registries unchanged, with their digests.

A source has a tag or a digest. A * in a tag matches several tags. A destination without a tag gets the image by its digest, or for a *
the matching tags. A manifest list is copied as a whole, unless --filter-by-os selects some of its images. The command does not send what a registry already
has, and mounts layers that are in another repository of the registry.

A destination s3://HOST/REGION/BUCKET/REPOSITORY:TAG is an S3 bucket. The objects have the paths of a registry's API, so that clients with HTTP access can pull
from the bucket. Credentials are in the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in ~/.aws/credentials.`,
		Example: `  # Copy an image to another tag
  oc image mirror registry.example.com/app:v1 registry.example.com/app:stable

  # Copy it to two places
  oc image mirror registry.example.com/app:v1 mirror.example.com/app:v1 backup.example.com/app:v1

  # Copy all tags that start with v
  oc image mirror 'registry.example.com/app:v*' mirror.example.com/app

  # Copy it to an S3 bucket, and pull it from images.s3.amazonaws.com/app:v1
  oc image mirror registry.example.com/app:v1 s3://s3.amazonaws.com/us-east-1/images/app:v1

  # Print what would be copied for the lines SOURCE=DESTINATION of a file
  oc image mirror -f mappings.txt --dry-run`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(m.run(command.Context(), args))
		},
	}
	flags := command.Flags()
	m.access.addFlags(flags)
	m.filter.addFlags(flags)
	flags.StringSliceVarP(&m.files, "filename", "f", nil, "File with lines of SOURCE=DESTINATION or SOURCE DESTINATION..., or - for standard input.")
	flags.BoolVar(&m.dryRun, "dry-run", false, "Print what would be copied, without copying it.")
	flags.BoolVar(&m.access.force, "force", false, "Send layers and manifests even if a registry has them.")
	flags.BoolVar(&m.access.alone, "skip-mount", false, "Send layers instead of mounting them from another repository of the registry.")
	flags.BoolVar(&m.access.alone, "skip-multiple-scopes", false, "Request access to one repository at a time, for registries that do not support several. Implies --skip-mount.")
	flags.StringSliceVar(&m.buckets.sources, "s3-source-bucket", nil, "BUCKET/PATH in S3 that already contains blobs, which S3 copies instead of the command. If it ends with [store], it is the storage directory of a registry.")
	flags.IntVar(&m.places, "max-registry", 4, "Maximum number of images that are copied concurrently.")
	return command
}

func (m *mirror) run(ctx context.Context, args []string) error {
	all, err := m.mappings(args)
	if err != nil {
		return err
	}
	if err := m.filter.complete(); err != nil {
		return err
	}
	if m.places < 1 {
		return fmt.Errorf("--max-registry %d: must be at least 1", m.places)
	}
	registries, err := m.access.open(ctx, m.ErrOut)
	if err != nil {
		return err
	}
	m.buckets.access, m.buckets.progress, m.buckets.buckets = &m.access, registries.progress, map[string]*bucket{}
	if all, err = registries.expand(all); err != nil {
		return err
	}
	start := time.Now()
	plan, err := m.plan(registries, all)
	if err != nil {
		return err
	}
	plan.print(m.ErrOut)
	fmt.Fprintf(m.ErrOut, "info: Planning completed in %s\n", elapsed(start))
	if m.dryRun {
		fmt.Fprintln(m.ErrOut, "info: Dry run complete")
		return nil
	}
	start = time.Now()
	if err := m.copy(ctx, registries, plan); err != nil {
		return err
	}
	fmt.Fprintf(m.ErrOut, "info: Mirroring completed in %s\n", elapsed(start))
	return nil
}

func (m *mirror) mappings(args []string) ([]mapping, error) {
	all, err := parseMappings(args)
	for _, file := range m.files {
		more, problem := readMappings(file, m.In)
		all, err = append(all, more...), errors.Join(err, problem)
	}
	if err == nil && len(all) == 0 {
		err = errors.New("specify the images to copy as SOURCE DESTINATION or SOURCE=DESTINATION, or a file that lists them with -f")
	}
	return all, err
}

// copy executes the plan. If it cannot copy an image, it continues with the other images, and
// returns all errors at the end.
func (m *mirror) copy(ctx context.Context, registries *registries, all plan) error {
	progress := registries.progress
	defer progress.end()
	pusher, err := remote.NewPusher(registries.options...)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(m.places)
	problems := make([]error, len(all))
	for n, c := range all {
		group.Go(func() error {
			if problems[n] = c.send(ctx, pusher); problems[n] != nil {
				problems[n] = explain("copy to", c.to.Name(), problems[n])
				return nil
			}
			progress.line(m.Out, fmt.Sprintf("%s %s", c.digest, c.place()))
			return nil
		})
	}
	_ = group.Wait() // the errors are stored for each image
	return errors.Join(problems...)
}

func (c *copyTask) send(ctx context.Context, pusher *remote.Pusher) error {
	if c.bucket != nil {
		return c.bucket.push(ctx, c.to, c.artifact)
	}
	return pusher.Push(ctx, c.to, c.artifact)
}

// place returns the destination for use in messages. If the destination has no tag, place omits the
// digest.
func (c *copyTask) place() string {
	content := c.to.Name()
	if c.to.Identifier() == c.digest.String() {
		content = c.to.Context().Name()
	}
	if c.bucket != nil {
		return s3Scheme + content
	}
	return content
}

const shownTime = 10 * time.Millisecond

func elapsed(start time.Time) time.Duration { return time.Since(start).Round(shownTime) }

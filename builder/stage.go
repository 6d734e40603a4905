package builder

import (
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// timed runs a step of the build and notes in the status how long it took.
func (r *run) timed(stage buildv1.StageName, step buildv1.StepName, work func() error) error {
	start := time.Now()
	err := work()
	r.took(stage, step, start, time.Since(start))
	return err
}

// took notes a step. The time of a stage is the sum of its steps'.
func (r *run) took(stage buildv1.StageName, step buildv1.StepName, start time.Time, took time.Duration) {
	note := buildv1.StepInfo{Name: step, StartTime: metav1.NewTime(start), DurationMilliseconds: took.Milliseconds()}
	stages := r.Build.Status.Stages
	for i := range stages {
		if stages[i].Name == stage {
			stages[i].Steps = append(stages[i].Steps, note)
			stages[i].DurationMilliseconds += note.DurationMilliseconds
			return
		}
	}
	r.Build.Status.Stages = append(stages, buildv1.StageInfo{
		Name: stage, StartTime: note.StartTime, DurationMilliseconds: note.DurationMilliseconds, Steps: []buildv1.StepInfo{note},
	})
}

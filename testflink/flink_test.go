package testflink

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// flink is the home of a Flink whose command line is tested; "": there is none, and no test.
var flink = os.Getenv("WEIR_TEST_FLINK")

// conf is a configuration that points Flink's command line at a job.
const conf = `rest.address: 127.0.0.1
rest.port: %s
client.timeout: 60 s
`

// rig is a directory with a job, and what it takes to ask it.
type rig struct {
	t        *testing.T
	dir, bin string
}

// running is a job that runs.
type running struct {
	*rig
	cmd  *exec.Cmd
	id   string
	conf string        // the directory of Flink's configuration
	log  *bytes.Buffer // complete after wait
	read chan struct{} // closed when the log is complete
}

func newRig(t *testing.T) *rig {
	if flink == "" {
		t.Skip("make test-flink sets WEIR_TEST_FLINK to where Flink is")
	}
	r := &rig{t: t, dir: t.TempDir()}
	r.bin = filepath.Join(r.dir, "j1")
	if out, err := exec.Command("go", "build", "-o", r.bin, "../examples/j1").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

var listening = regexp.MustCompile(`Rest endpoint of job (\w+) listening at http://127\.0\.0\.1:(\d+)`)

// start starts the job, which runs for as long as nobody ends it.
func (r *rig) start(args ...string) *running {
	r.t.Helper()
	args = append(args, "-D", "rest.port=0", "--", "-dir", filepath.Join(r.dir, "data"), "-records", "1000000000", "-rate", "1000")
	j := &running{rig: r, cmd: exec.Command(r.bin, args...), log: &bytes.Buffer{}, read: make(chan struct{})}
	out, err := j.cmd.StderrPipe()
	if err == nil {
		err = j.cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = j.cmd.Process.Kill() }) // most have ended
	found := make(chan []string, 1)
	go func() { // ends with the job
		defer close(j.read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(j.log, lines.Text())
			if at := listening.FindStringSubmatch(lines.Text()); at != nil {
				found <- at
			}
		}
	}()
	select {
	case at := <-found:
		j.id, j.conf = at[1], filepath.Join(r.dir, "conf-"+at[2])
		j.configure(at[2])
	case <-j.read:
		r.t.Fatalf("the job has ended:\n%s", j.log)
	}
	return j
}

// configure writes Flink's configuration, beside its own settings of the log.
func (j *running) configure(port string) {
	j.t.Helper()
	err := os.CopyFS(j.conf, os.DirFS(filepath.Join(flink, "conf")))
	if err == nil {
		err = os.WriteFile(filepath.Join(j.conf, "config.yaml"), fmt.Appendf(nil, conf, port), 0o666)
	}
	if err != nil {
		j.t.Fatal(err)
	}
	await(j.t, "http://127.0.0.1:"+port+"/jobs/"+j.id+"/status", "RUNNING")
}

// await asks until an answer has a text.
func await(t *testing.T, url, text string) {
	t.Helper()
	for {
		a, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		_, err = b.ReadFrom(a.Body)
		a.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), text) {
			return
		}
	}
}

// wait waits for the job's end, and is its exit status.
func (j *running) wait() int {
	<-j.read
	_ = j.cmd.Wait()
	return j.cmd.ProcessState.ExitCode()
}

// said is what Flink's command line has done.
type said struct {
	t        *testing.T
	command  string
	status   int
	out, err string
}

// script runs Flink's command line as a user does.
func (j *running) script(args ...string) said {
	j.t.Helper()
	return j.run(filepath.Join(flink, "bin", "flink"), args...)
}

// flink runs Flink's command line without its script, which starts three JVMs more.
func (j *running) flink(args ...string) said {
	j.t.Helper()
	return j.run("java", append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog.file=" + filepath.Join(j.dir, "flink.log"),
		"-Dlog4j.configurationFile=file:" + filepath.Join(j.conf, "log4j-cli.properties"), "-cp", filepath.Join(flink, "lib", "*"),
		"org.apache.flink.client.cli.CliFrontend"}, args...)...)
}

// run runs a command. JOB stands for the job, and what is printed has JOB in its place too.
func (j *running) run(program string, args ...string) said {
	j.t.Helper()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "JOB", j.id)
	}
	var out, stderr bytes.Buffer
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), "FLINK_CONF_DIR="+j.conf, "FLINK_LOG_DIR="+j.dir, "FLINK_HOME="+flink)
	c.Stdout, c.Stderr = &out, &stderr
	s := said{t: j.t, command: strings.Join(args, " ")}
	var exit *exec.ExitError
	if err := c.Run(); errors.As(err, &exit) {
		s.status = exit.ExitCode()
	} else if err != nil {
		j.t.Fatal(err)
	}
	s.out, s.err = strings.ReplaceAll(out.String(), j.id, "JOB"), strings.ReplaceAll(stderr.String(), j.id, "JOB")
	return s
}

// exits checks the exit status, and that standard output matches, line by line. What is in parentheses is returned.
func (s said) exits(status int, lines ...string) []string {
	s.t.Helper()
	pattern := regexp.MustCompile("^" + strings.Join(lines, "\n") + "\n$")
	found := pattern.FindStringSubmatch(s.out)
	if s.status != status || found == nil {
		s.t.Fatalf("%s: exit status %d\n%s%s\nwant exit status %d and\n%v", s.command, s.status, s.out, s.err, status, pattern)
	}
	return found[1:]
}

// because checks what a failure is told with.
func (s said) because(texts ...string) {
	s.t.Helper()
	for _, text := range append(texts, "The program finished with the following exception:") {
		if !strings.Contains(s.err, text) {
			s.t.Errorf("%s does not say %q:\n%s", s.command, text, s.err)
		}
	}
}

const (
	stamp   = `\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d : `
	unknown = "ffffffffffffffffffffffffffffffff"
	waiting = "Waiting for response..."
)

func TestFlinkCommandLine(t *testing.T) {
	r := newRig(t)
	j := r.start()
	sp := filepath.Join(r.dir, "sp")
	j.script("list").exits(0, waiting, "-+ Running/Restarting Jobs -+", stamp+`JOB : j1 \(RUNNING\)`, "-+", `No scheduled jobs\.`)
	one := j.flink("savepoint", "JOB", sp).exits(0, `Triggering savepoint for job JOB\.`, waiting, `Savepoint completed\. Path: file:(.+)`,
		`You can resume your program from this savepoint with the run command\.`)[0]
	j.flink("savepoint", "-type", "native", "-detached", "JOB", sp).exits(0, `Triggering savepoint in detached mode for job JOB\.`,
		`Successfully trigger manual savepoint, triggerId: [0-9a-f]{32}`)
	j.flink("checkpoint", "-full", "JOB").exits(0, `Triggering checkpoint for job JOB\.`, waiting, `Checkpoint\(FULL\) \d+ for job JOB completed\.`,
		`You can resume your program from this checkpoint with the run command\.`)
	j.refusals(sp)
	j.flink("savepoint", "-d", one).exits(0, "Disposing savepoint '"+one+`'\.`, waiting, "Savepoint '"+one+`' disposed\.`)
	if _, err := os.Stat(one); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the savepoint that was disposed of: %v", err)
	}
	stopped := j.flink("stop", "--savepointPath", sp, "JOB").exits(0, `Suspending job "JOB" with a CANONICAL savepoint\.`,
		`Triggering stop-with-savepoint for job JOB\.`, waiting, `Savepoint completed\. Path: (file:.+)`)[0]
	if status := j.wait(); status != 0 {
		t.Errorf("the stopped job exits with %d\n%s", status, j.log)
	}
	r.goesOn(stopped, sp)
}

// refusals are failures: what went wrong reaches the user, through Java's serialisation and all.
func (j *running) refusals(sp string) {
	j.t.Helper()
	s := j.flink("savepoint", "JOB")
	s.exits(1, `Triggering savepoint for job JOB\.`, waiting)
	s.because("Failed to trigger a savepoint for the job JOB.",
		"Config key [execution.checkpointing.savepoint-dir] is not set. Property [target-directory] must be provided.")
	blocked := filepath.Join(j.dir, "a-file")
	if err := os.WriteFile(blocked, nil, 0o666); err != nil {
		j.t.Fatal(err)
	}
	s = j.flink("stop", "--savepointPath", filepath.Join(blocked, "sp"), "JOB")
	s.exits(1, `Suspending job "JOB" with a CANONICAL savepoint\.`, `Triggering stop-with-savepoint for job JOB\.`, waiting)
	s.because(`Could not stop with a savepoint job "JOB".`, "org.apache.flink.runtime.checkpoint.CheckpointException: ", blocked, "not a directory")
	s = j.flink("savepoint", unknown, sp)
	s.exits(1, "Triggering savepoint for job "+unknown+`\.`, waiting)
	s.because("org.apache.flink.runtime.messages.FlinkJobNotFoundException: Could not find Flink job (" + unknown + ")")
	s = j.flink("cancel", unknown)
	s.exits(1, "Cancelling job "+unknown+`\.`)
	s.because("Could not cancel job "+unknown+".", "Job could not be found.")
	s = j.flink("savepoint", "-d", filepath.Join(j.dir, "nowhere"))
	s.exits(1, "Disposing savepoint '.*'.", waiting)
	s.because("there is no such directory")
}

// goesOn has the job go on from the savepoint by which it was stopped; then it is cancelled with one, drained, and cancelled.
func (r *rig) goesOn(from, sp string) {
	r.t.Helper()
	j := r.start("-s", from)
	from = j.flink("cancel", "-s", sp, "JOB").exits(0, "DEPRECATION WARNING: .*", "Cancelling job JOB with CANONICAL savepoint to "+sp+`\.`,
		`Cancelled job JOB\. Savepoint stored in (file:.+)\.`)[0]
	if status := j.wait(); status != 1 || !strings.Contains(j.log.String(), "the job was canceled") {
		r.t.Errorf("the cancelled job exits with %d\n%s", status, j.log)
	}
	j = r.start("-s", from)
	j.flink("cancel", "JOB").exits(0, `Cancelling job JOB\.`, `Cancelled job JOB\.`)
	j.wait()
	j = r.start("-s", "latest")
	j.flink("stop", "--drain", "--type", "native", "--savepointPath", sp, "JOB").exits(0, `Draining job "JOB" with a NATIVE savepoint\.`,
		`Triggering stop-with-savepoint for job JOB\.`, waiting, `Savepoint completed\. Path: file:.+`)
	if status := j.wait(); status != 0 {
		r.t.Errorf("the drained job exits with %d\n%s", status, j.log)
	}
}

package storage

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"strconv"

	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/snapshot"
)

// A snapshot that a job was started from stays its owner's, unless the job claims it: then the job deletes it when it does not need it
// any more, as it does its own checkpoints. Two owners would each delete what the other still needs, so who claims a snapshot leaves a
// file _claimed in its directory, made exclusively, and nobody else can claim it. (Flink lets two jobs do so, and one of them fail.)
// Nor can a checkpoint be claimed while the job is alive that it belongs to.
//
//	_claimed written, durable          the job's own start may fail behind it: the same job may claim again
//	the record says origin             now the claim is known to the next run
//	...
//	the record says given up           now it is no restore point any more
//	the snapshot deleted, _claimed with it

// claimant is the job that has claimed a snapshot, and its directory; "": it has none.
type claimant struct {
	job base.JobID
	dir string
}

// ClaimedError says that a snapshot is another job's already.
type ClaimedError struct {
	Location string
	// Job has claimed it, or took it and is alive; Dir is that job's directory, "" where it has none.
	Job base.JobID
	Dir string
}

func (e *ClaimedError) Error() string {
	owner := "job " + string(e.Job)
	if e.Dir != "" {
		owner += " in " + e.Dir
	}
	return fmt.Sprintf("storage: %s belongs to %s, which deletes it when it needs it no more: start from it without claiming it "+
		"(execution.state-recovery.claim-mode: NO_CLAIM); if that job is gone for good, remove %s", e.Location, owner, path.Join(e.Location, claimName))
}

const claimTitle = "weir claim 1"

func (c claimant) encode() []byte {
	return sealText(claimTitle, line{"job", string(c.job)}, line{"dir", strconv.Quote(c.dir)})
}

func decodeClaim(b []byte) (c claimant, err error) {
	values, err := openText(b, claimTitle, "job", "dir")
	if err != nil {
		return claimant{}, err
	}
	dir, err := strconv.Unquote(values[1])
	if err != nil || !snapshot.ValidJob(base.JobID(values[0])) {
		return claimant{}, fmt.Errorf("%w: its fields cannot be: %w", ErrDamaged, err)
	}
	return claimant{job: base.JobID(values[0]), dir: dir}, nil
}

// claimSnapshot makes the snapshot at location the job's own, durably.
func claimSnapshot(fsys FS, location string, who claimant) error {
	release, err := holdOwner(fsys, location, who.dir)
	if err != nil {
		return fmt.Errorf("claiming a snapshot: %w", err)
	}
	defer release()
	for range 2 { // the second time finds who was faster
		switch there, err := readClaim(fsys, location); {
		case err != nil:
			return err
		case there == who:
			return fsys.SyncDir(location)
		case there != claimant{}:
			return &ClaimedError{Location: location, Job: there.job, Dir: there.dir}
		}
		if err := writeClaim(fsys, location, who); !errors.Is(err, iofs.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("storage: %s is claimed by others again and again", location)
}

// readClaim is who has claimed a snapshot; the zero claimant: nobody.
func readClaim(fsys FS, location string) (claimant, error) {
	name := path.Join(location, claimName)
	b, err := readFile(fsys, name)
	if errors.Is(err, iofs.ErrNotExist) {
		return claimant{}, nil
	}
	var c claimant
	if err == nil {
		c, err = decodeClaim(b)
	}
	if err != nil {
		return claimant{}, fmt.Errorf("storage: %s says who owns the snapshot, but is unusable: %w; if no job does, remove it", name, err)
	}
	return c, nil
}

// writeClaim writes the claim exclusively.
func writeClaim(fsys FS, location string, who claimant) error {
	tmp := path.Join(location, fmt.Sprintf("%s-%s%s", claimName, who.job, tmpSuffix))
	err := ignoreMissing(fsys.Remove(tmp))
	if err == nil {
		err = writeSynced(fsys, tmp, who.encode())
	}
	if err == nil {
		err = fsys.Link(tmp, path.Join(location, claimName))
		_ = fsys.Remove(tmp) // a second name harms nobody
	}
	if err == nil {
		err = fsys.SyncDir(location)
	}
	if err != nil {
		return fmt.Errorf("storage: claiming %s: %w", location, err)
	}
	return nil
}

// holdOwner keeps the job from running that a snapshot belongs to: that in whose directory it lies, and that which has claimed it.
// If one is running that is a *ClaimedError. The job in the directory self is the caller's own.
func holdOwner(fsys FS, location, self string) (release func(), err error) {
	var held []func()
	release = func() {
		for _, let := range held {
			let()
		}
	}
	c, err := readClaim(fsys, location)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{path.Dir(location), c.dir} {
		if dir == "" || dir == self {
			continue
		}
		let, err := holdJob(fsys, dir)
		if locked := (*LockedError)(nil); errors.As(err, &locked) {
			err = &ClaimedError{Location: location, Job: base.JobID(path.Base(dir)), Dir: dir + " (running: " + locked.Owner + ")"}
		}
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, let)
		if dir == c.dir { // the same one could not be locked twice
			break
		}
	}
	return release, nil
}

// holdJob locks a job's directory; what is none needs no lock.
func holdJob(fsys FS, dir string) (release func(), err error) {
	name := path.Join(dir, lockName)
	if _, err := fsys.Stat(name); errors.Is(err, iofs.ErrNotExist) {
		return func() {}, nil
	}
	lock, err := fsys.Lock(name, "an inspection of a snapshot")
	if err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil // nothing was written
}

// OwnerOf is the job that may delete the snapshot at location at any time; "": none that is known of.
func OwnerOf(fsys FS, location string) (base.JobID, error) {
	release, err := holdOwner(fsys, location, "")
	if taken := (*ClaimedError)(nil); errors.As(err, &taken) {
		return taken.Job, nil
	}
	if err != nil {
		return "", err
	}
	defer release()
	c, err := readClaim(fsys, location)
	return c.job, err
}

// StartFrom implements Checkpoints.
func (d *JobDir) StartFrom(m *snapshot.Metadata, location string, claim bool) error {
	mode := borrowed
	if claim {
		mode = claimed
		if err := claimSnapshot(d.fs, location, claimant{job: d.job, dir: d.dir}); err != nil {
			return err
		}
	}
	return d.change(func(r *record) error { r.startFrom(origin{mode: mode, id: m.ID, location: location}); return nil })
}

// Owns implements Checkpoints.
func (d *JobDir) Owns(location string) bool {
	id, own := d.chkID(location)
	return d.isOrigin(location) || own && id > d.known().left
}

// Within implements Checkpoints.
func (d *JobDir) Within(location string) bool { return path.Dir(location) == d.dir }

// isOrigin is true of what the job was started from and has claimed.
func (d *JobDir) isOrigin(location string) bool {
	o := d.known().origin
	return o.location == location && (o.mode == claimed || o.mode == givenUp)
}

func (o origin) String() string {
	return fmt.Sprintf("%s (%s, checkpoint %d)", o.location, o.mode, o.id)
}

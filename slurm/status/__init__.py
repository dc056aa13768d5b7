"""Where runs stand, put together from their folders and the scheduler, and how that is shown."""

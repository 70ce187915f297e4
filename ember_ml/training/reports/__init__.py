"""Parts of the HTML reports of sweeps and tuning."""
